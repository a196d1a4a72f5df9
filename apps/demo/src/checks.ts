/** Checks of one part of a tree. */
import type { Basics, Finding, Part } from "./audit-state.ts";
import { isSecretFile, redactSecrets } from "./secrets.ts";
import { listFiles, readText } from "./source-tree.ts";

/** Maximum number of parts to check. */
const maxParts = 24;

/**
 * Lists the parts of a tree, at most 24: its packages, or its top-level folders in a tree without packages. Top-level
 * folders share the tests and the README of the tree.
 */
export async function listParts(root: string, signal: AbortSignal): Promise<Part[]> {
  const { files } = await listFiles(root, signal);
  const packages = files.flatMap((path) =>
    /\/package\.json$/.test(path) ? [path.slice(0, path.lastIndexOf("/"))] : [],
  );
  const folders = [...new Set(files.map((path) => (path.includes("/") ? path.slice(0, path.indexOf("/")) : "")))];
  if (packages.length > 0) return packages.slice(0, maxParts).map((folder) => ({ name: folder, folder }));
  const shared: Basics = {
    tests: files.some((path) => testPattern.test(path)),
    readme: files.some((path) => !path.includes("/") && readmePattern.test(path)),
  };
  return folders.slice(0, maxParts).map((folder) => ({ name: folder === "" ? "." : folder, folder, shared }));
}

/** Runs one piece of a check as a step and records its result. */
type StepRunner = <Value>(name: string, work: () => Promise<Value>) => Promise<Value>;

/** Checks one part in recorded steps, so that a crashed check resumes after the last finished step. */
export async function checkPart(
  root: string,
  part: Part,
  runStep: StepRunner,
  signal: AbortSignal,
): Promise<Finding[]> {
  const files = await runStep("list", () => listPartFiles(root, part, signal));
  const texts = await runStep("read", () => readTextStats(root, files, signal));
  const manifest = await runStep("manifest", () => findManifestProblems(root, part, files));
  return [...findSecrets(texts), ...findLayoutProblems(files, findBasics(part, files), texts), ...manifest].map(
    (finding) => ({
      part: part.name,
      ...finding,
    }),
  );
}

/** Returns the grade of an audit, by the worst severity. */
export function computeGrade(parts: readonly Part[], findings: readonly Finding[]): string {
  if (parts.length === 0) return "nothing to check";
  if (findings.some(({ severity }) => severity === "high")) return "act now";
  if (findings.some(({ severity }) => severity === "medium")) return "worth a look";
  return "in good order";
}

/** Lists the files of a part; for the root, only the files outside any folder. */
async function listPartFiles(root: string, { folder }: Part, signal: AbortSignal): Promise<readonly string[]> {
  if (folder !== "") return (await listFiles(root, signal, folder)).files;
  return (await listFiles(root, signal)).files.filter((path) => !path.includes("/"));
}

/** Returns the presence of tests and README in the part or in the shared tree. */
function findBasics({ shared }: Part, files: readonly string[]): Basics {
  return {
    tests: shared?.tests === true || files.some((path) => testPattern.test(path)),
    readme: shared?.readme === true || files.some((path) => readmePattern.test(path)),
  };
}

interface TextStats {
  readonly path: string;
  readonly lines: number;
  readonly secrets: number;
  readonly unreadable: boolean;
}

async function readTextStats(root: string, files: readonly string[], signal: AbortSignal): Promise<TextStats[]> {
  const texts: TextStats[] = [];
  for (const path of files) {
    signal.throwIfAborted();
    const file = await readText(root, path);
    const text = file.kind === "text" ? file.text : "";
    texts.push({
      path,
      lines: text.split("\n").length,
      secrets: redactSecrets(text).count,
      unreadable: file.kind === "unreadable",
    });
  }
  return texts;
}

type PartFinding = Omit<Finding, "part">;

function findSecrets(texts: readonly TextStats[]): PartFinding[] {
  const secretFiles = texts.filter(({ path }) => isSecretFile(path)).map(({ path }) => path);
  const filesWithSecrets = texts.filter(({ secrets }) => secrets > 0).map(({ path }) => path);
  return [
    ...(secretFiles.length > 0
      ? [{ severity: "high" as const, text: `files that usually contain secrets: ${summarizePaths(secretFiles)}` }]
      : []),
    ...(filesWithSecrets.length > 0
      ? [{ severity: "high" as const, text: `text that looks like a secret in ${summarizePaths(filesWithSecrets)}` }]
      : []),
  ];
}

const sourcePattern = /\.(ts|tsx|js|jsx|mjs|py|rs|go|java|kt|rb|php|c|cc|cpp|cs|swift|scala|sh)$/;
const testPattern = /(^|\/)(tests?|specs?|__tests__)\/|[._-](test|spec)\.|(^|\/)test_/i;
const readmePattern = /(^|\/)readme(\.|$)/i;

function findLayoutProblems(files: readonly string[], basics: Basics, texts: readonly TextStats[]): PartFinding[] {
  const findings: PartFinding[] = [];
  const sources = files.filter((path) => sourcePattern.test(path) && !testPattern.test(path));
  if (sources.length > 0 && !basics.tests)
    findings.push({
      severity: "medium",
      text: `${sources.length} source ${sources.length === 1 ? "file" : "files"}, no tests`,
    });
  if (sources.length > 0 && !basics.readme) findings.push({ severity: "low", text: "no README" });
  const longFiles = texts.filter(({ path, lines }) => sourcePattern.test(path) && lines > 800);
  if (longFiles.length > 0)
    findings.push({
      severity: "low",
      text: `files of more than 800 lines: ${summarizePaths(longFiles.map(({ path }) => path))}`,
    });
  const unreadable = texts.filter((text) => text.unreadable).map(({ path }) => path);
  if (unreadable.length > 0)
    findings.push({ severity: "low", text: `files that cannot be read: ${summarizePaths(unreadable)}` });
  return findings;
}

async function findManifestProblems(root: string, part: Part, files: readonly string[]): Promise<PartFinding[]> {
  const path = part.folder === "" ? "package.json" : `${part.folder}/package.json`;
  if (!files.includes(path)) return [];
  const file = await readText(root, path);
  const manifest = file.kind === "text" ? parseManifest(file.text) : undefined;
  if (manifest === undefined) return [{ severity: "medium", text: "package.json is not valid JSON" }];
  const missingFields = ["description", "license"].filter((field) => typeof manifest[field] !== "string");
  return missingFields.length === 0
    ? []
    : [{ severity: "low", text: `package.json has no ${missingFields.join(" and no ")}` }];
}

function parseManifest(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

/** Joins the first three paths and the number of remaining paths. */
function summarizePaths(paths: readonly string[]): string {
  const shown = paths.slice(0, 3).join(", ");
  return paths.length > 3 ? `${shown} and ${paths.length - 3} more` : shown;
}
