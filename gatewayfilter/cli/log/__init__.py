"""`gatewayfilter log` and `gatewayfilter report`: search, statistics, export and reports of the decision log."""
