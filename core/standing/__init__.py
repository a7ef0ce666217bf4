"""The verbs on standing sessions, a module each; a command imports only the one that it runs."""
