/** The folder `examples` of the packed `statewright`: each page of the docs names a program, which runs in the folder. */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createExampleFiles, listExamples, listImportedPackages } from "../package-examples.mjs";

const root = join(import.meta.dirname, "../..");
const programs: readonly { readonly from: string; readonly to: string }[] = listExamples(root);
const folder = mkdtempSync(join(tmpdir(), "examples-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(listPages())(
  "each TypeScript block of %s has imports, or is part of a program that the page links",
  (page) => {
    const text = readFileSync(join(root, page), "utf8");
    const linked = listProgramLinks(page, text);
    for (const { from, label } of linked) {
      const program = programs.find((each) => each.from === from);
      expect(program, `${page} links to ${from}, which is not in the folder examples of the tarball`).toBeDefined();
      expect(`examples/${label}`, page).toBe(program?.to);
    }
    const code = linked.map(({ from }) => removeSpaces(readFileSync(join(root, from), "utf8")));
    for (const block of listBlocks(text)) {
      const isWhole = /^import /m.test(block);
      const isLinked = code.some((program) => program.includes(removeSpaces(block)));
      expect(isWhole || isLinked, `${page}: expected a "Program:" line with the program of this block:\n${block}`).toBe(
        true,
      );
    }
  },
);

test.each(listPages())("the commands of the programs of %s name files of the folder", (page) => {
  for (const [line] of readFileSync(join(root, page), "utf8").matchAll(/^Program: .*$/gm)) {
    expect(line).toMatch(
      /^Program: \[\S+\]\(\S+\)\. Run it with `[^`]+` in \[a copy of the examples\]\(\S*running-examples\.md\)\./,
    );
    const [, into = "", file = ""] =
      /`(?:cd (\S+) && )?(?:\w+=\S+ )?(?:node|npx vitest run) ([^\s`]+)/.exec(line) ?? [];
    expect(programs.map(({ to }) => to)).toContain(posix.join("examples", into, file));
  }
});

test("the README of the examples lists commands of programs, and of their tests where they only export", () => {
  const readme = createExampleFiles(root).find(({ path }) => path.endsWith("README.md"))?.content ?? "";
  expect(readme).toContain("| `cd tour && node run.ts` |");
  expect(readme).toContain("| `npx vitest run tour/define.test.ts` |");
  expect(readme).not.toContain("node define.ts");
  expect(readme).not.toContain(".config.ts");
});

test("the programs import only each other and packages of the examples' package.json", () => {
  const [manifest] = createExampleFiles(root);
  const { dependencies }: { readonly dependencies: object } = JSON.parse(manifest?.content ?? "");
  const places = new Set(programs.map(({ to }) => to));
  for (const { from, to } of programs) {
    const code = readFileSync(join(root, from), "utf8");
    for (const name of listImportedPackages(code)) expect(Object.keys(dependencies), from).toContain(name);
    for (const [, path = ""] of code.matchAll(/^(?:import|export|\}).*?"(\.[^"]+)";/gm))
      expect([...places], `${from} imports ${path}`).toContain(posix.join(posix.dirname(to), path));
  }
});

test.each(["tour/run.ts", "graphs/subgraphs.ts", "agents/agents.ts", "tools/plugins.ts"])(
  "the program %s of the packed folder runs outside the repository",
  (program) => {
    stage();
    const cwd = join(folder, "examples", dirname(program));
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, "examples", program)], {
      cwd,
      encoding: "utf8",
    });
    expect(status, stderr).toBe(0);
    expect(stdout).not.toBe("");
  },
);

/** Writes the folder as packed, with links to the packages in place of an installation. */
function stage(): void {
  if (existsSync(join(folder, "examples"))) return;
  for (const { from, to } of programs) write(to, readFileSync(join(root, from), "utf8"));
  for (const { path, content } of createExampleFiles(root)) write(path, content);
  const installed = join(folder, "examples/node_modules");
  mkdirSync(join(installed, "@statewright"), { recursive: true });
  for (const name of readdirSync(join(root, "packages"))) {
    const place = name === "statewright" ? name : join("@statewright", name);
    symlinkSync(join(root, "packages", name), join(installed, place), "junction");
  }
  symlinkSync(join(root, "packages/statewright/node_modules/zod"), join(installed, "zod"), "junction");
}

function write(path: string, content: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}

function listPages(): string[] {
  const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .map((file) => posix.join("docs", file.replaceAll("\\", "/")))
    .filter((file) => file.endsWith(".md"));
  const packages = readdirSync(join(root, "packages")).flatMap((name) =>
    ["README.md", "SKILL.md"].map((file) => posix.join("packages", name, file)),
  );
  return ["README.md", "ARCHITECTURE.md", ...docs, ...packages];
}

function listProgramLinks(page: string, text: string): { readonly from: string; readonly label: string }[] {
  return [...text.matchAll(/^Program: \[([^\]]+)\]\(([^)]+)\)/gm)].map(([, label = "", target = ""]) => ({
    from: posix.normalize(posix.join(posix.dirname(page), target)),
    label,
  }));
}

function listBlocks(text: string): string[] {
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? "");
}

/** Removes white space and trailing commas, so that a formatter's line breaks make no difference. */
function removeSpaces(code: string): string {
  return code.replaceAll(/\s+/g, "").replaceAll(/,([)\]}]|$)/g, "$1");
}
