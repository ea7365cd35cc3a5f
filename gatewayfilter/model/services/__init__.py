"""Services: entries of the catalogue, the values of policies about them, and the use of quotas."""
