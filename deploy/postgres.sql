-- Run once by the Postgres container of docker-compose.yml, before anything else.
-- The relay logs in with its own role; walrelay init grants it what else it needs.
create role relay login replication password 'relay';
