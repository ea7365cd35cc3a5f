"""Clients and policies as pages, API and commands show and change them."""
