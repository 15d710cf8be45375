"""The protocol between a hub and a device: pure, role-blind, standard library only."""
