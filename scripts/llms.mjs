// Writes llms.txt, the table of contents for language models, from the table of docs/README.md. `npm test` checks
// that the file is up to date.
//
// ```
// node scripts/llms.mjs
// ```

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const root = join(import.meta.dirname, "..");

/** Returns the text of llms.txt. */
export function createLlmsText() {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const sentence = readme.split("\n\n")[1] ?? "";
  const rows = readFileSync(join(root, "docs/README.md"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| ") && line.includes("]("));
  const pages = rows.map((row) => {
    const [links = "", about = ""] = row.split("|").slice(1);
    const [first, ...others] = [...`${links} ${about}`.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].map(
      ([, name, path]) => `[${name}](${path.startsWith("../") ? path.slice(3) : `docs/${path}`})`,
    );
    const plain = about.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1").trim();
    return [`- ${first}: ${plain}`, ...others.map((each) => `  - ${each}`)].join("\n");
  });
  return [
    "# Statewright",
    "",
    `> ${sentence}`,
    "",
    "Each package contains its pages in the folder `docs`, in the installed version, with `SKILL.md` as the entry; `statewright` contains all pages.",
    "",
    "## Docs",
    "",
    ...pages,
    "",
  ].join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  writeFileSync(join(root, "llms.txt"), createLlmsText());
