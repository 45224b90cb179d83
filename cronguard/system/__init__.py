"""What touches the machine: processes, output, pings, clock, host."""
