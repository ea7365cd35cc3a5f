"""Commands of crawling and classification: crawl, queue, classify, words, rules, learn, fingerprint."""
