"""The certificate authority: key and certificate, their renewal, and the forms that clients install."""
