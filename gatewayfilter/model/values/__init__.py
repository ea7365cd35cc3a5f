"""Values of policies that act on requests and responses, and the file types that they name."""
