"""The service's HTTP surface: who may ask, what is answered. No decisions of the product are made here."""
