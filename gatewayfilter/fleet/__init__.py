"""A fleet of gateways: one publisher, and followers that pull its signed snapshots, rules and policies by HTTP.

Publisher: `keys`, `bundle`, `export`, `members`, `health` and `endpoint`. Follower: `transport`, `download`, `adoption`,
`follower` and `follower_state`. Both: `manifest` and `blocks`. See docs/decisions/0020-fleet.md.
"""
