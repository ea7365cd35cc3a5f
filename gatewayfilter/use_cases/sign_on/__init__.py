"""Single sign-on by OpenID Connect: the authorization code flow with PKCE, and the accounts that it logs in to."""
