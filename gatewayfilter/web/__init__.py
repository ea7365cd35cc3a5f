"""The dashboard and the REST API: what people and other programs see of the filter."""
