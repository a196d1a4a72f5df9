import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const folder = join(import.meta.dirname, "..");
const page = readFileSync(join(folder, "README.md"), "utf8");

test("the example on the README page prints the output shown there", () => {
  const printed = execFileSync(process.execPath, [join(folder, "src/index.ts"), "rows"], { encoding: "utf8" });
  const shown = page.match(/^ {4}.*(\n {4}.*)*/m)?.[0] ?? "";
  expect(printed.trimEnd()).toBe(shown.replaceAll(/^ {4}/gm, ""));
});

test("the README page names every example and every plugin", () => {
  const besides = ["index.ts", "print.ts", "agents/scenes.ts"];
  const examples = readdirSync(join(folder, "src"), { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => file.endsWith(".ts") && !besides.includes(file));
  for (const file of examples) expect(page).toContain(`](src/${file})`);
  for (const language of readdirSync(join(folder, "tools"))) expect(page).toContain(`](tools/${language}/README.md)`);
});
