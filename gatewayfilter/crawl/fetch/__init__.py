"""The fetch of one URL: policy, robots, politeness, HTTP."""
