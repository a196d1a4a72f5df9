/** The checks of one part of a tree: what is looked at, and what is worth telling. */
import type { Care, Finding, Part } from "./audit-state.ts";
import { isSecretFile, redacted } from "./secrets.ts";
import { listFiles, readText } from "./source-tree.ts";

/** More parts than this are not checked one by one. */
const maxParts = 24;

/** The parts of a tree: its packages, or its top-level folders where it has no packages; those share its tests and its README. Bounded. */
export async function partsOf(root: string, signal: AbortSignal): Promise<Part[]> {
  const { files } = await listFiles(root, signal);
  const packages = files.flatMap((path) =>
    /\/package\.json$/.test(path) ? [path.slice(0, path.lastIndexOf("/"))] : [],
  );
  const folders = [...new Set(files.map((path) => (path.includes("/") ? path.slice(0, path.indexOf("/")) : "")))];
  if (packages.length > 0) return packages.slice(0, maxParts).map((folder) => ({ name: folder, folder }));
  const shared: Care = {
    tests: files.some((path) => aTest.test(path)),
    readme: files.some((path) => !path.includes("/") && aReadme.test(path)),
  };
  return folders.slice(0, maxParts).map((folder) => ({ name: folder === "" ? "." : folder, folder, shared }));
}

/** Does a piece of a check and records its result. */
type Recorded = <Value>(name: string, work: () => Promise<Value>) => Promise<Value>;

/** Check one part in recorded steps: what a crash interrupts goes on where it was. */
export async function checkPart(root: string, part: Part, recorded: Recorded, signal: AbortSignal): Promise<Finding[]> {
  const files = await recorded("list", () => filesOf(root, part, signal));
  const texts = await recorded("read", () => readAll(root, files, signal));
  const manifest = await recorded("manifest", () => manifestProblems(root, part, files));
  return [...secretFindings(texts), ...shapeFindings(files, careOf(part, files), texts), ...manifest].map((found) => ({
    part: part.name,
    ...found,
  }));
}

/** The grade of an audit: the worst that was found decides. */
export function gradeOf(parts: readonly Part[], findings: readonly Finding[]): string {
  if (parts.length === 0) return "nothing to check";
  if (findings.some(({ severity }) => severity === "high")) return "act now";
  if (findings.some(({ severity }) => severity === "medium")) return "worth a look";
  return "in good order";
}

/** The files of a part; of the root, those that lie in no folder. */
async function filesOf(root: string, { folder }: Part, signal: AbortSignal): Promise<readonly string[]> {
  if (folder !== "") return (await listFiles(root, signal, folder)).files;
  return (await listFiles(root, signal)).files.filter((path) => !path.includes("/"));
}

/** What a part has of its own, or shares with the tree. */
function careOf({ shared }: Part, files: readonly string[]): Care {
  return {
    tests: shared?.tests === true || files.some((path) => aTest.test(path)),
    readme: shared?.readme === true || files.some((path) => aReadme.test(path)),
  };
}

interface Text {
  readonly path: string;
  readonly lines: number;
  readonly secrets: number;
  readonly unreadable: boolean;
}

async function readAll(root: string, files: readonly string[], signal: AbortSignal): Promise<Text[]> {
  const texts: Text[] = [];
  for (const path of files) {
    signal.throwIfAborted();
    const file = await readText(root, path);
    const text = file.kind === "text" ? file.text : "";
    texts.push({
      path,
      lines: text.split("\n").length,
      secrets: redacted(text).count,
      unreadable: file.kind === "unreadable",
    });
  }
  return texts;
}

type Found = Omit<Finding, "part">;

function secretFindings(texts: readonly Text[]): Found[] {
  const named = texts.filter(({ path }) => isSecretFile(path)).map(({ path }) => path);
  const shaped = texts.filter(({ secrets }) => secrets > 0).map(({ path }) => path);
  return [
    ...(named.length > 0
      ? [{ severity: "high" as const, text: `files that usually hold secrets: ${some(named)}` }]
      : []),
    ...(shaped.length > 0
      ? [{ severity: "high" as const, text: `text that looks like a secret in ${some(shaped)}` }]
      : []),
  ];
}

const source = /\.(ts|tsx|js|jsx|mjs|py|rs|go|java|kt|rb|php|c|cc|cpp|cs|swift|scala|sh)$/;
const aTest = /(^|\/)(tests?|specs?|__tests__)\/|[._-](test|spec)\.|(^|\/)test_/i;
const aReadme = /(^|\/)readme(\.|$)/i;

function shapeFindings(files: readonly string[], care: Care, texts: readonly Text[]): Found[] {
  const found: Found[] = [];
  const sources = files.filter((path) => source.test(path) && !aTest.test(path));
  if (sources.length > 0 && !care.tests)
    found.push({
      severity: "medium",
      text: `${sources.length} source ${sources.length === 1 ? "file" : "files"}, no tests`,
    });
  if (sources.length > 0 && !care.readme) found.push({ severity: "low", text: "no README" });
  const long = texts.filter(({ path, lines }) => source.test(path) && lines > 800);
  if (long.length > 0)
    found.push({ severity: "low", text: `files of more than 800 lines: ${some(long.map(({ path }) => path))}` });
  const unreadable = texts.filter((text) => text.unreadable).map(({ path }) => path);
  if (unreadable.length > 0) found.push({ severity: "low", text: `files that cannot be read: ${some(unreadable)}` });
  return found;
}

async function manifestProblems(root: string, part: Part, files: readonly string[]): Promise<Found[]> {
  const path = part.folder === "" ? "package.json" : `${part.folder}/package.json`;
  if (!files.includes(path)) return [];
  const file = await readText(root, path);
  const manifest = file.kind === "text" ? parsed(file.text) : undefined;
  if (manifest === undefined) return [{ severity: "medium", text: "its package.json is not JSON" }];
  const wanted = ["description", "license"].filter((field) => typeof manifest[field] !== "string");
  return wanted.length === 0 ? [] : [{ severity: "low", text: `its package.json has no ${wanted.join(" and no ")}` }];
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

/** The first three of a list, and how many more there are. */
function some(paths: readonly string[]): string {
  const shown = paths.slice(0, 3).join(", ");
  return paths.length > 3 ? `${shown} and ${paths.length - 3} more` : shown;
}
