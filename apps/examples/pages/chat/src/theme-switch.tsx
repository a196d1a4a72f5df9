import { type ReactNode, useEffect, useState } from "react";

const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];
const themeKey = "chat-page-theme";

function readTheme(): Theme {
  const saved = localStorage.getItem(themeKey);
  return themes.find((theme) => theme === saved) ?? "system";
}

/** Selects the theme: that of the system, light or dark. */
export function ThemeSwitch(): ReactNode {
  const [theme, setTheme] = useState(readTheme);
  useEffect(() => {
    localStorage.setItem(themeKey, theme);
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return (
    <select
      aria-label="Theme"
      value={theme}
      onChange={(event) => setTheme(themes.find((known) => known === event.target.value) ?? "system")}
    >
      <option value="system">System</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}
