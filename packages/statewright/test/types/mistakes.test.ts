/**
 * Each program of the folder `mistakes` has one mistake. The comment above its line holds the first line of the expected
 * error; TypeScript 7 and 5.9 report this error, at this line, and no other.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CompilerName, compilers, createTypeProject, type Diagnostic } from "../support/type-project.ts";

const folder = fileURLToPath(new URL("mistakes", import.meta.url));
const mark = /^\s*\/\/ @ts-expect-error (.*)$/;

interface Program {
  readonly file: string;
  /** First sentence of the program's comment. */
  readonly mistake: string;
  readonly lines: readonly string[];
  readonly expected: readonly { readonly line: number; readonly message: string }[];
}

const programs = readdirSync(folder, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.replaceAll("\\", "/"))
  .toSorted()
  .map(readProgram);
const wrong = programs.filter(({ file }) => file.includes("/"));

const diagnostics = new Map<string, readonly Diagnostic[]>();
beforeAll(async () => {
  const project = await createTypeProject();
  for (const { file, lines } of programs)
    await project.write(`src/${file}`, lines.map((line) => (mark.test(line) ? "" : line)).join("\n"));
  const names = Object.keys(compilers) as CompilerName[];
  await Promise.all(names.map(async (name) => diagnostics.set(name, await project.compile(name))));
  await project.remove();
});
afterAll(() => diagnostics.clear());

test("at least forty programs have one mistake each, and the code that they share has none [FX30]", () => {
  expect(wrong.length).toBeGreaterThanOrEqual(40);
  expect(wrong.filter(({ expected }) => expected.length !== 1).map(({ file }) => file)).toEqual([]);
  expect(new Set(wrong.map(({ mistake }) => mistake)).size).toBe(wrong.length);
});

describe.each(Object.keys(compilers))("%s", (compiler) => {
  test("no error is outside of a wrong program [FX30]", () => {
    const files = new Set(wrong.map(({ file }) => `src/${file}`));
    expect(diagnostics.get(compiler)?.filter(({ file }) => !files.has(file))).toEqual([]);
  });
  test.each(wrong)("one mistake is one error at its line: $mistake [FX30]", ({ file, expected }) => {
    const found = (diagnostics.get(compiler) ?? []).filter((each) => each.file === `src/${file}`);
    expect(found.map(({ line, message }) => ({ line, message: sortWords(message.split("\n")[0] ?? "") }))).toEqual(
      expected.map(({ line, message }) => ({ line, message: sortWords(message) })),
    );
  });
});

function readProgram(file: string): Program {
  const lines = readFileSync(join(folder, file), "utf8").split("\n");
  const expected = lines.flatMap((line, index) => {
    const message = mark.exec(line)?.[1];
    return message === undefined ? [] : [{ line: index + 2, message }];
  });
  return { file, mistake: lines[0]?.replace(/^\/\*\* (.*)\. \*\/$/, "$1") ?? "", lines, expected };
}

/** Sorts the words of a message: the two compilers print the members of a type in different orders. */
function sortWords(message: string): string {
  return message
    .split(/[\s|;&<>{}(),'.]+/)
    .toSorted()
    .join(" ");
}
