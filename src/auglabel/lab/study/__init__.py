"""What is run for the tables and figures: their rows, how rho and alpha are chosen, the plan, the claims."""
