print("reelhaul")
