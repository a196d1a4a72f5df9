/** Table of codes on the page about errors of a server. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { problemTable } from "../src/http/problem-table.ts";

test("the page about errors of a server lists each code that a caller can get, with its status and its title [V136]", () => {
  const page = readFileSync(fileURLToPath(new URL("../../../docs/server-errors.md", import.meta.url)), "utf8");
  const listed = [...page.matchAll(/^\| (\d{3}) \| `([a-z_]+)` \| (.+) \|$/gm)].map(([, status, code, title]) => [
    code,
    Number(status),
    title,
  ]);
  const shown = Object.entries(problemTable).filter(
    ([code, { title }]) => title !== problemTable.internal.title || code === "internal",
  );
  expect(listed.sort()).toEqual(shown.map(([code, { status, title }]) => [code, status, title]).sort());
});
