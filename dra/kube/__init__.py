"""The one room of the domain with a door: requests and answers are pure values, `client` sends and streams them."""
