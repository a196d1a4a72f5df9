import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { addImportsLine, listProgramPages } from "../page-imports.mjs";

const root = join(import.meta.dirname, "../..");

const programs = [
  ...files("packages", /\/test\/docs\/.+\.ts$/),
  ...files("apps/examples", /^apps\/examples\/(src|tools)\/.+\.ts$/),
].map((file) => squeezed(readFileSync(join(root, file), "utf8")));

test.each(pages())("every TypeScript snippet of %s is part of a tested file", (page) => {
  for (const snippet of snippets(readFileSync(join(root, page), "utf8"))) {
    const found = programs.some((program) => program.includes(squeezed(snippet)));
    expect(found, `no file in packages/*/test/docs or apps/examples holds this snippet of ${page}:\n${snippet}`).toBe(
      true,
    );
  }
});

test.each(pages())("every relative link of %s leads to an existing file", (page) => {
  const text = readFileSync(join(root, page), "utf8");
  for (const [, target = ""] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)) {
    expect(() => readFileSync(join(root, page, "..", target)), `${page} links to ${target}`).not.toThrow(/ENOENT/);
  }
});

test.each(pages())("every anchor in a link of %s is a heading of its page", (page) => {
  const text = readFileSync(join(root, page), "utf8");
  for (const [link, target = "", anchor] of text.matchAll(/\]\((?!https?:)([^)#\s]*)#([\w-]+)\)/g)) {
    const file = target === "" ? page : join(page, "..", target);
    expect(listAnchors(readFileSync(join(root, file), "utf8")), `${page}: ${link}`).toContain(anchor);
  }
});

test.each(listProgramPages())("%s states the entry of each name that its blocks use without an import", (page) => {
  const text = readFileSync(join(root, page), "utf8");
  const hint = "run `node scripts/page-imports.mjs`";
  expect(text, hint).toBe(addImportsLine(page, text));
});

test("docs/errors.md states a cause and a fix for each error code", () => {
  const [, ...sections] = readFileSync(join(root, "docs/errors.md"), "utf8").split(/^### /m);
  for (const section of sections) expect(section).toMatch(/^\w+\n\S[\s\S]*\n\*\*Fix:\*\* \w/);
});

test("docs/testing.md imports each function of the test kit that its programs call [FX51]", () => {
  const page = readFileSync(join(root, "docs/testing.md"), "utf8");
  const imports = [...page.matchAll(/import \{ ([^}]+) \} from "([^"]+)"/g)].flatMap(([, names = "", entry = ""]) =>
    names.split(", ").map((name): [string, string] => [name, entry]),
  );
  const places = new Map(imports);
  for (const name of ["testRun", "nodeTest", "toolTest", "everyOrder"]) {
    expect(page).toContain(`${name}(`);
    expect(places.get(name), name).toBe("@statewright/testing/vitest");
  }
  for (const name of ["scriptedModel", "call", "say"]) expect(places.get(name), name).toBe("@statewright/testing");
});

test.each([
  ["coming-from-langgraph.md", ["Studio", "Server", "vector stores", "absent channel", "addConditionalEdges"]],
  ["coming-from-mastra.md", ["Studio", "evals", "voice", "RAG"]],
])("docs/%s lists the features without a counterpart [FX54]", (page, features) => {
  const [, section = ""] =
    /^## What has no counterpart\n([\s\S]*?)\n## /m.exec(readFileSync(join(root, "docs", page), "utf8")) ?? [];
  for (const feature of features) expect(section).toContain(feature);
});

test("the tests that docs/why-xstate.md names exist, and other pages link to it [FX55]", () => {
  const page = readFileSync(join(root, "docs/why-xstate.md"), "utf8");
  const named = [...page.matchAll(/`(packages\/[\w/.-]+\.test\.ts)`/g)].map(([, file = ""]) => file);
  expect(named.length).toBeGreaterThan(1);
  for (const file of named) expect(existsSync(join(root, file)), file).toBe(true);
  for (const other of ["README.md", "machines.md", "coming-from-xstate.md"])
    expect(readFileSync(join(root, "docs", other), "utf8"), other).toContain("](why-xstate.md)");
});

/** Lists the anchors of a page's headings, as GitHub creates them. */
function listAnchors(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, "")
      .replaceAll(" ", "-"),
  );
}

function pages(): string[] {
  return [
    "README.md",
    "ARCHITECTURE.md",
    ...files("docs", /\.md$/),
    ...files("packages", /^packages\/[^/]+\/(README|SKILL)\.md$/),
    ...files("apps/examples", /\.md$/),
  ];
}

function snippets(text: string): string[] {
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? "");
}

/** Removes white space, so that a formatter's line breaks make no difference. */
function squeezed(code: string): string {
  return code.replaceAll(/\s+/g, "").replaceAll(/,([)\]}]|$)/g, "$1");
}

function files(folder: string, wanted: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((file) => join(folder, file))
    .filter((file) => wanted.test(file) && !file.includes("node_modules"));
}

test("each protocol of the server has a page with a tested program, a mapping, and what is refused [V145]", () => {
  for (const page of ["server-api.md", "langgraph-sdk.md", "ai-sdk-ui.md"]) {
    const text = readFileSync(join(root, "docs", page), "utf8");
    expect(text, page).toMatch(/^Program: /m);
    expect(text, page).toMatch(/^## What is refused/m);
    expect(text.match(/^\| /gm)?.length ?? 0, page).toBeGreaterThan(20);
  }
  for (const page of ["secure-a-server.md", "tenants.md", "stop-button.md", "tour/8-serve.md", "tour/9-secure.md"])
    expect(readFileSync(join(root, "docs", page), "utf8"), page).toMatch(/^Program: /m);
  expect(readFileSync(join(root, "docs/behind-a-proxy.md"), "utf8")).toMatch(/nginx[\s\S]*Caddy[\s\S]*Cloudflare/);
});

test("the page about deployments says for each part of a server whether it needs sticky threads [V132]", () => {
  const [, section = ""] =
    /^## Run several replicas\n([\s\S]*?)\n## /m.exec(readFileSync(join(root, "docs/deploy.md"), "utf8")) ?? [];
  for (const part of ["cancel and pause", "text in flight", "idempotency keys", "recovery"])
    expect(section).toMatch(new RegExp(`^\\| [^|]*${part}[^|]*\\| (?:yes|no) \\|`, "m"));
});
