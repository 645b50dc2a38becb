"""The model of cost: work of calls, and the time that it takes."""
