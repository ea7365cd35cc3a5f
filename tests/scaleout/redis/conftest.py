from tests.scaleout.redis.redis_fixtures import redis, redis_server

__all__ = ["redis", "redis_server"]
