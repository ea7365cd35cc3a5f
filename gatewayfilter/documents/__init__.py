"""Reading of documents: charset, markup, visible text, main text, PDF."""
