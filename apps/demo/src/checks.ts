/** Checks of one part of a tree. */
import type { Finding, Part } from "./audit-state.ts";
import { formatCount } from "./format-text.ts";
import { isSecretFile, redactSecrets } from "./secrets.ts";
import { isDownloadedPackage, isSampleFile, isTestFile, listFiles, readText } from "./source-tree.ts";

/** Maximum number of parts to check. */
const maxParts = 24;

/** Maximum number of findings of one kind in one part; one more finding counts the others. */
const maxFindingsPerKind = 5;

/** Maximum number of lines of a source file without a finding. */
const maxLines = 800;

const manifestPattern = /(^|\/)(package\.json|pyproject\.toml|setup\.py|Cargo\.toml|go\.mod|pom\.xml|composer\.json)$/;

/** Manifests that are material of tests and of generators. */
const samplePackagePattern = /(^|\/)(tests?|specs?|__tests__|fixtures?|testdata|templates?)\//i;

/** Parts of a tree, the fact about them, and the findings about the tree as a whole. */
export interface AuditPlan {
  readonly parts: readonly Part[];
  readonly facts: Readonly<Record<string, string>>;
  readonly findings?: readonly Finding[];
}

/**
 * Plans the parts of a tree: its packages and the files outside of packages, or its top-level folders in a tree
 * without nested packages. Tests outside of packages count for every package. A tree without nested packages needs
 * tests and a README only once. Plans at most 24 parts; the fact `parts` names the number of all parts.
 */
export async function planParts(root: string, signal: AbortSignal): Promise<AuditPlan> {
  const { files } = await listFiles(root, signal);
  const packages = await listPackageFolders(root, files);
  const folders = packages.length > 0 ? packages : listTopFolders(files);
  const rest = files.filter((path) => !folders.some((folder) => path.startsWith(`${folder}/`)));
  const isPackage = packages.length > 0;
  const tested = rest.some(isTestFile);
  const parts: Part[] = [
    ...(rest.length > 0 ? [{ name: ".", folder: "", excluded: folders, isPackage, tested }] : []),
    ...folders.map((folder) => ({
      name: folder,
      folder,
      excluded: folders.filter((other) => other.startsWith(`${folder}/`)),
      isPackage,
      tested,
    })),
  ];
  const planned = parts.slice(0, maxParts);
  const count =
    planned.length < parts.length ? `${planned.length} of ${parts.length} parts` : formatCount(parts.length, "part");
  const findings = isPackage ? [] : await findMissingBasics(root, ".", files);
  return {
    parts: planned,
    facts: { parts: `${count} checked` },
    ...(findings.length === 0 ? {} : { findings }),
  };
}

/** Lists the folders below the root with a manifest of a package, without material of tests and generators. */
async function listPackageFolders(root: string, files: readonly string[]): Promise<readonly string[]> {
  const folders = new Set<string>();
  for (const path of files) {
    if (!path.includes("/") || !manifestPattern.test(path) || samplePackagePattern.test(path)) continue;
    if (await isPackageManifest(root, path)) folders.add(path.slice(0, path.lastIndexOf("/")));
  }
  return [...folders];
}

/** Returns false for a package.json without a name, which only sets the module type of a folder. */
async function isPackageManifest(root: string, path: string): Promise<boolean> {
  if (!path.endsWith("/package.json")) return true;
  const file = await readText(root, path);
  const manifest = file.kind === "text" ? parseManifest(file.text) : undefined;
  return manifest === undefined || typeof manifest["name"] === "string";
}

function listTopFolders(files: readonly string[]): readonly string[] {
  return [...new Set(files.flatMap((path) => (path.includes("/") ? [path.slice(0, path.indexOf("/"))] : [])))];
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
  const basics = part.isPackage ? await runStep("basics", () => findMissingBasics(root, part.name, files, part)) : [];
  return [
    ...limitFindings(part, findSecrets(texts)),
    ...basics,
    ...limitFindings(part, findLongFiles(texts)),
    ...limitFindings(part, findUnreadableFiles(texts)),
    ...manifest,
  ];
}

/** Returns the grade of an audit, by the worst severity. */
export function computeGrade(parts: readonly Part[], findings: readonly Finding[]): string {
  if (parts.length === 0) return "nothing to check";
  if (findings.some(({ severity }) => severity === "high")) return "act now";
  if (findings.some(({ severity }) => severity === "medium")) return "worth a look";
  return "in good order";
}

/** Lists the files of a part, without the files of other parts. */
async function listPartFiles(root: string, part: Part, signal: AbortSignal): Promise<readonly string[]> {
  const { files } = await listFiles(root, signal, part.folder === "" ? "." : part.folder);
  return files.filter((path) => !part.excluded.some((folder) => path.startsWith(`${folder}/`)));
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
      lines: countLines(text),
      secrets: redactSecrets(text).count,
      unreadable: file.kind === "unreadable",
    });
  }
  return texts;
}

/** Counts lines; a line break at the end begins no line. */
export function countLines(text: string): number {
  return text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

function findSecrets(texts: readonly TextStats[]): Finding[] {
  return texts.flatMap(({ path, secrets }): Finding[] => {
    const severity = isSampleFile(path) ? "low" : "high";
    const place = severity === "low" ? ", in a test, an example or a document" : "";
    if (isSecretFile(path)) return [{ severity, path, title: `a file that usually contains secrets${place}` }];
    return secrets > 0 ? [{ severity, path, title: `text that looks like a secret${place}` }] : [];
  });
}

const sourcePattern = /\.(ts|tsx|js|jsx|mjs|cjs|py|rs|go|java|kt|rb|php|c|cc|cpp|cs|swift|scala|sh)$/;
const generatedPattern = /(^|\/)(dist|build|generated)\/|\.d\.[cm]?ts$|\.(min|bundle|generated)\./;
const readmePattern = /(^|\/)readme(\.|$)/i;

/** Tests inside a source file, a convention of Rust. */
const inlineTestPattern = /#\[(cfg\(test\)|test)\]/;

/** Returns true for source files, without declaration files and generated files. */
function isSourceFile(path: string): boolean {
  return sourcePattern.test(path) && !generatedPattern.test(path);
}

async function hasInlineTests(root: string, files: readonly string[]): Promise<boolean> {
  for (const path of files.filter((file) => file.endsWith(".rs"))) {
    const file = await readText(root, path);
    if (file.kind === "text" && inlineTestPattern.test(file.text)) return true;
  }
  return false;
}

/** Finds missing tests and a missing README of source files. Downloaded packages are usually published without tests. */
async function findMissingBasics(
  root: string,
  path: string,
  files: readonly string[],
  { tested }: { readonly tested: boolean } = { tested: false },
): Promise<Finding[]> {
  const sources = files.filter((file) => isSourceFile(file) && !isTestFile(file));
  if (sources.length === 0) return [];
  const isTested = tested || files.some(isTestFile) || (await hasInlineTests(root, files));
  const downloaded = isDownloadedPackage(root);
  return [
    ...(isTested
      ? []
      : [
          {
            severity: downloaded ? ("low" as const) : ("medium" as const),
            path,
            title: `${formatCount(sources.length, "source file")}, no tests${downloaded ? " (usual for a published package)" : ""}`,
          },
        ]),
    ...(files.some((file) => readmePattern.test(file)) ? [] : [{ severity: "low" as const, path, title: "no README" }]),
  ];
}

function findLongFiles(texts: readonly TextStats[]): Finding[] {
  const long = texts.filter(({ path, lines }) => isSourceFile(path) && lines > maxLines);
  const longestFirst = long.toSorted((left, right) => right.lines - left.lines);
  return longestFirst.map(({ path, lines }) => ({
    severity: "low",
    path,
    title: `${formatCount(lines, "line")} in one file`,
  }));
}

function findUnreadableFiles(texts: readonly TextStats[]): Finding[] {
  const unreadable = texts.filter((text) => text.unreadable);
  return unreadable.map(({ path }) => ({ severity: "low", path, title: "a file that cannot be read" }));
}

/** Keeps the first findings of one kind, and counts the others in one finding of the part. */
function limitFindings(part: Part, findings: readonly Finding[]): Finding[] {
  const [worst] = findings.slice(maxFindingsPerKind).toSorted((left) => (left.severity === "high" ? -1 : 1));
  if (worst === undefined) return [...findings];
  const others = findings.length - maxFindingsPerKind;
  return [
    ...findings.slice(0, maxFindingsPerKind),
    createFinding(worst.severity, part, `${formatCount(others, "more file")} with this finding: ${worst.title}`),
  ];
}

function createFinding(severity: Finding["severity"], part: Part, title: string): Finding {
  return { severity, path: part.name, title };
}

async function findManifestProblems(root: string, part: Part, files: readonly string[]): Promise<Finding[]> {
  const path = part.folder === "" ? "package.json" : `${part.folder}/package.json`;
  if (!files.includes(path)) return [];
  const file = await readText(root, path);
  const manifest = file.kind === "text" ? parseManifest(file.text) : undefined;
  if (manifest === undefined) return [{ severity: "medium", path, title: "not valid JSON" }];
  // No registry shows the description and the license of a private package or of a package.json without a name.
  if (manifest["private"] === true || manifest["name"] === undefined) return [];
  const missingFields = ["description", "license"].filter((field) => typeof manifest[field] !== "string");
  return missingFields.length === 0 ? [] : [{ severity: "low", path, title: `no ${missingFields.join(" and no ")}` }];
}

function parseManifest(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}
