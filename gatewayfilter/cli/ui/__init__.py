"""What commands share: options, output, progress, dates and patterns."""
