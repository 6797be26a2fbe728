"""The spending cap: what every request reserves from before it is sent."""
