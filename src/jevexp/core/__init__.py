"""Plain data and rules without input or output: tasks, decisions, records, summaries."""
