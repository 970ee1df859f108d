// Runs before the first paint, so that the page never flashes in the other theme.
try {
  const theme = localStorage.getItem("reelhaul.theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch { /* Storage may be forbidden: the system's theme is used. */ }
