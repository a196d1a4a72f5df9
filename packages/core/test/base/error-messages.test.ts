/** Reads all package sources: every error message states its fix, and every error code has an entry in the docs. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { errorCodes } from "../../src/adapter.ts";

const packages = join(import.meta.dirname, "../../..");
const errorsPage = readFileSync(join(packages, "../docs/errors.md"), "utf8");

const sources = readdirSync(packages).flatMap((name) => {
  const src = join(packages, name, "src");
  return readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => join(src, file));
});

/** The text of each `new StatewrightError(…)`, up to its closing bracket. */
function listErrors(source: string): readonly string[] {
  return [...source.matchAll(/new StatewrightError\(/g)].map(({ index }) => {
    let depth = 0;
    for (let at = index; at < source.length; at++) {
      if (source[at] === "(") depth++;
      if (source[at] === ")" && --depth === 0) return source.slice(index, at + 1);
    }
    return source.slice(index);
  });
}

const made = sources.flatMap((file) =>
  listErrors(readFileSync(file, "utf8")).map((error) => ({ file: file.slice(packages.length + 1), error })),
);

test("every error code used in the sources exists and has an entry in the docs", () => {
  expect(made.length).toBeGreaterThan(100);
  for (const { file, error } of made) {
    const code = /^new StatewrightError\(\s*"([a-z_]+)"/.exec(error)?.[1];
    if (code === undefined) continue;
    expect(errorCodes, `${file}: ${error}`).toContain(code);
    expect(errorsPage, `${file}: ${code}`).toContain(`\n### ${code}\n`);
  }
});

test("every error in the sources states the fact and the fix, each as one sentence without a full stop", () => {
  for (const { file, error } of made) {
    const at = `${file}: ${error}`;
    if (/^new StatewrightError\([\w.]+, \{ \.\.\.parts/.test(error)) continue;
    expect(error, at).toMatch(/\bwhat(?::|,|\b)/);
    expect(error, at).toMatch(/\bnext(?::|,|\b)/);
    for (const [, said = ""] of error.matchAll(/\bnext:\s*(?:"((?:[^"\\]|\\.)*)"|'(?:[^'\\]|\\.)*')/g)) {
      if (said === "") continue;
      expect(said, at).toMatch(/^[A-Z]/);
      expect(said, at).not.toMatch(/\.$/);
    }
    for (const [, said = ""] of error.matchAll(/\bwhat:\s*"((?:[^"\\]|\\.)*)"/g)) expect(said, at).not.toMatch(/\.$/);
  }
});
