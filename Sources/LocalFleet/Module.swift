// LocalFleet
