// Selects the pages of docs/ for the tarball of each package, and rewrites their links: a link to a page in the same
// tarball remains a link, any other link becomes plain text. The tarball of `statewright` also contains the programs of
// the pages. Used by scripts/pack-package.mjs.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { createExampleFiles, listExamples } from "./package-examples.mjs";

/** Pages by package; a name with a final slash is a folder. `statewright` contains all pages. */
export const pagesByPackage = {
  "packages/core": [
    "running-examples.md",
    "asking-a-model.md",
    "tour/",
    "node-policies.md",
    "subgraphs.md",
    "tools.md",
    "hidden-arguments.md",
    "tool-errors.md",
    "steering.md",
    "artifacts.md",
    "middleware.md",
    "long-term-store.md",
    "streaming.md",
    "serving-threads.md",
    "cancel-a-run.md",
    "deliver-work.md",
    "run-later.md",
    "several-engines.md",
    "notifications.md",
    "many-runs.md",
    "reading-a-store.md",
    "operating.md",
    "guarantees.md",
    "changing-graphs.md",
    "checking-graphs.md",
    "machines.md",
    "why-xstate.md",
    "durable-machines.md",
    "errors.md",
    "glossary.md",
  ],
  "packages/sqlite": [
    "running-examples.md",
    "sqlite.md",
    "file-format.md",
    "long-term-store.md",
    "guarantees.md",
    "errors.md",
  ],
  "packages/store-kit": ["running-examples.md", "file-format.md", "errors.md"],
  "packages/agent": [
    "running-examples.md",
    "agents.md",
    "asking-a-model.md",
    "safety-and-approval.md",
    "chat-server.md",
    "middleware.md",
    "budgets.md",
    "context.md",
    "memory.md",
    "sub-agents.md",
    "model-failures.md",
    "streaming.md",
    "errors.md",
    "examples/",
  ],
  "packages/ai-sdk": ["running-examples.md", "models.md", "model-failures.md", "coming-from-ai-sdk.md", "errors.md"],
  "packages/host": ["running-examples.md", "tool-packs.md", "safety-and-approval.md", "errors.md"],
  "packages/json-schema": ["running-examples.md", "tools.md", "errors.md"],
  "packages/server": [
    "running-examples.md",
    "serving-threads.md",
    "server-api.md",
    "ai-sdk-ui.md",
    "langgraph-sdk.md",
    "run-later.md",
    "deploy.md",
    "behind-a-proxy.md",
    "mounting-a-server.md",
    "secure-a-server.md",
    "server-errors.md",
    "errors.md",
  ],
  "packages/client": ["running-examples.md", "errors.md"],
  "packages/mcp": ["running-examples.md", "mcp.md", "mcp-server.md", "tools.md", "tool-errors.md", "errors.md"],
  "packages/openapi": ["running-examples.md", "openapi.md", "tools.md", "tool-errors.md", "errors.md"],
  "packages/plugins": ["running-examples.md", "plugins.md", "tools.md", "tool-errors.md", "errors.md"],
  "packages/tools": ["running-examples.md", "tool-packs.md", "safety-and-approval.md", "errors.md"],
  "packages/pictures": ["running-examples.md", "machines.md", "checking-graphs.md"],
  "packages/otel": ["running-examples.md", "middleware.md", "streaming.md"],
  "packages/testing": [
    "running-examples.md",
    "testing.md",
    "testing-crashes.md",
    "testing-coverage.md",
    "testing-exported-runs.md",
    "testing-adapters.md",
    "checking-graphs.md",
    "changing-graphs.md",
    "tools.md",
    "errors.md",
  ],
  "packages/statewright": ["."],
};

/** Returns the docs files of a package's tarball, with their paths in the tarball and their texts. */
export function listDocs(root, folder) {
  const wanted = pagesByPackage[folder] ?? [];
  const all = listMarkdown(root, "docs");
  const pages = all.filter((page) => isWanted(page, wanted));
  const places = new Map([
    ...pages.map((page) => [page, page]),
    [posix.join(folder, "README.md"), "README.md"],
    [posix.join(folder, "SKILL.md"), "SKILL.md"],
  ]);
  const examples = listExamples(root);
  const hasExamples = wanted.includes(".");
  if (hasExamples) places.set("llms.txt", "llms.txt");
  if (hasExamples) for (const { from: file, to } of examples) places.set(file, to);
  for (const image of pages.flatMap((page) => listImages(root, page))) places.set(image, image);
  const programs = new Map(examples.map(({ from, to }) => [from, to]));
  const files = [...places].map(([from, to]) => ({
    path: to,
    content: /\.(md|txt)$/.test(from)
      ? rewriteLinks(root, { from, to, places, programs })
      : readFileSync(join(root, from)),
  }));
  return hasExamples ? [...files, ...createExampleFiles(root)] : files;
}

/** Lists the targets of all relative links of a page, as paths in the repository or in a tarball. */
export function listLinks(path, text) {
  return [...text.matchAll(link)].flatMap(([, , target = ""]) =>
    isElsewhere(target) ? [] : [posix.normalize(posix.join(posix.dirname(path), target.split("#")[0]))],
  );
}

const link = /(!?\[[^\]]*\])\(([^)\s]+)\)/g;

function isElsewhere(target) {
  return /^(?:[a-z]+:|#)/i.test(target);
}

function isWanted(page, wanted) {
  const name = page.slice("docs/".length);
  return wanted.some((each) => each === "." || name === each || (each.endsWith("/") && name.startsWith(each)));
}

function listMarkdown(root, folder) {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((file) => posix.join(folder, file.replaceAll("\\", "/")))
    .filter((file) => file.endsWith(".md"))
    .sort();
}

function listImages(root, page) {
  const text = readFileSync(join(root, page), "utf8");
  return listLinks(page, text).filter((target) => /\.(svg|png)$/.test(target) && existsSync(join(root, target)));
}

function rewriteLinks(root, { from, to, places, programs }) {
  const text = readFileSync(join(root, from), "utf8");
  return text.replaceAll(link, (whole, label, target) => {
    if (isElsewhere(target)) return whole;
    const [path, anchor] = target.split("#");
    const led = posix.normalize(posix.join(posix.dirname(from), path));
    const inside = places.get(led) ?? places.get(posix.join(led, "README.md"));
    if (inside !== undefined) {
      const relative = posix.relative(posix.dirname(to), inside);
      return `${label}(${relative}${anchor === undefined ? "" : `#${anchor}`})`;
    }
    const name = label.replace(/^!?\[|\]$/g, "");
    const program = programs.get(led);
    if (program !== undefined) return `${name} (\`${program}\` of the package \`statewright\`)`;
    const shown = existsSync(join(root, led)) && statSync(join(root, led)).isDirectory() ? posix.basename(led) : led;
    return name.replaceAll("`", "") === shown || shown === "." ? name : `${name} (\`${shown}\` in the repository)`;
  });
}

/** Returns a sentence for each fault of the docs in an unpacked tarball: missing files and broken links. */
export function findDocProblems(unpacked, name) {
  const problems = [];
  const pages = [
    "README.md",
    "SKILL.md",
    ...(existsSync(join(unpacked, "docs")) ? listMarkdown(unpacked, "docs") : []),
  ];
  if (pages.length < 3) problems.push(`${name}: the tarball has no docs`);
  for (const page of pages) {
    if (!existsSync(join(unpacked, page))) {
      problems.push(`${name}: the tarball has no ${page}`);
      continue;
    }
    const text = readFileSync(join(unpacked, page), "utf8");
    if (page === "SKILL.md" && !/^---\nname: \S+\ndescription: .+\n---\n/.test(text))
      problems.push(`${name}: SKILL.md must begin with its name and description`);
    for (const target of listLinks(page, text))
      if (target.startsWith("..") || !existsSync(join(unpacked, target)))
        problems.push(`${name}: ${page} links to ${target}, which is not in the tarball (${dirname(page)})`);
  }
  return problems;
}
