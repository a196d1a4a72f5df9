/** The entry of statewright for browsers, bundled as an application would. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";

const folder = join(import.meta.dirname, "../../packages/statewright");

test("a browser bundle of statewright has no SQLite, no module of Node and no warning [FX47]", async () => {
  const warnings: string[] = [];
  const bundle = await rolldown({
    input: [join(folder, "src/browser.ts"), join(folder, "src/browser-store.ts")],
    platform: "browser",
    onwarn: (warning) => warnings.push(warning.message ?? String(warning)),
  });
  const { output } = await bundle.generate({ format: "esm" });
  await bundle.close();
  const chunks = output.flatMap((file) => (file.type === "chunk" ? [file] : []));
  expect(warnings).toEqual([]);
  expect(chunks.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports]).filter(isPackage)).toEqual(
    [],
  );
  const modules = chunks.flatMap(({ moduleIds }) => moduleIds);
  expect(modules.filter((id) => /better-sqlite3|packages\/(sqlite|host)\//.test(id))).toEqual([]);
  expect(modules.some((id) => id.includes("packages/agent/"))).toBe(true);
});

test("the published exports of statewright lead browsers to the entries without SQLite [FX47]", () => {
  const { exports, publishConfig } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  for (const [entry, withoutSqlite] of [
    [".", "./browser"],
    ["./store", "./browser/store"],
  ] as const) {
    const [condition, target] = Object.entries(publishConfig.exports[entry])[0] ?? [];
    expect([condition, target]).toEqual(["browser", publishConfig.exports[withoutSqlite]]);
  }
  expect([exports["./browser"], exports["./browser/store"]]).toEqual(["./src/browser.ts", "./src/browser-store.ts"]);
});

/** Returns true for an import that is no chunk of the bundle. */
function isPackage(id: string): boolean {
  return !id.endsWith(".js");
}
