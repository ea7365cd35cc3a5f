"""Pages of the filter's own: block page, error pages, set-up pages, stub resources."""
