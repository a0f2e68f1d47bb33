"""Many runs: jobs, who executes them, what came out."""
