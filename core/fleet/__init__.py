"""Many hosts: sessions of several machines share one chat, through a database that is an exchange between them."""
