/**
 * Parses and validates the command line before the demo starts. An invalid argument ends the demo with one sentence.
 */
import { accessSync, constants, existsSync, readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import * as z from "zod";

export interface Options {
  /** Source tree to audit. */
  readonly target: string;
  /** Path of the report; next to the database by default. */
  readonly out: string | undefined;
  /** Real model, as `provider/name`; the scripted model if absent. */
  readonly model: string | undefined;
  readonly keep: boolean;
  /** Prints the report as JSON to stdout, and everything else to stderr. */
  readonly json: boolean;
  /** State folder of a stopped demo to resume. */
  readonly resume: string | undefined;
  /** Answer to the interrupt, in place of a prompt at the terminal. */
  readonly answer: "yes" | "no" | undefined;
  readonly maxDbKb: number | undefined;
  /** Serves the agent over HTTP, in place of the acts of the demo. */
  readonly serve: { readonly store: string; readonly port: number | undefined } | undefined;
}

/** Invalid command line. The message is printed without a stack trace. */
export class UsageError extends Error {}

export const usage = `npm run demo [-- [folder] [options]]

  folder                   source tree or git repository to audit; this repository by default

  --out <file>             write the report to this file, not to a temporary folder
  --model <provider/name>  use a real model, with its key from the environment; sends parts of the tree to the provider
  --answer <yes|no>        answer the interrupt without a prompt
  --json                   print the report as JSON to stdout, and everything else to stderr; answers yes
  --keep                   keep the database, and print its path
  --resume <folder>        resume a stopped demo
  --serve                  serve an agent that reads the folder over HTTP, until Ctrl-C
  --store <file>           with --serve: database of the threads; the same file has the same port and token again
  --port <number>          with --serve: port; 4270 by default, or a free one
  --max-db-kb <number>     simulate a full disk: limit the size of the database
  --help                   print this text
`;

/** Base of relative paths: the folder in which the user ran the command. npm passes that folder in INIT_CWD. */
const baseFolder = process.env["INIT_CWD"] ?? process.cwd();

const repository = resolve(import.meta.dirname, "../../..");

/** Parses the command line. Returns `help` for `--help`. Throws {@link UsageError}. */
export function readOptions(argv: readonly string[]): Options | "help" {
  const { values, positionals } = parseCommandLine(argv);
  if (values.help) return "help";
  if (positionals.length > 1)
    throw new UsageError(
      `Expected one folder, got ${positionals.map((word) => `"${word}"`).join(", ")}. Remove the other folders.`,
    );
  const resumed = values.resume === undefined ? undefined : checkFolder(resolve(baseFolder, values.resume));
  if (resumed !== undefined && (positionals.length > 0 || values.model !== undefined))
    throw new UsageError("--resume uses the folder and the model of the stopped demo. Remove the folder and --model.");
  const target = positionals[0] === undefined ? repository : checkFolder(resolve(baseFolder, positionals[0]));
  return {
    target,
    out: values.out === undefined ? undefined : checkReportFile(resolve(baseFolder, values.out)),
    model: values.model === undefined ? undefined : checkModelName(values.model),
    keep: values.keep,
    json: values.json,
    resume: resumed === undefined ? undefined : checkStateFolder(resumed),
    answer: values.answer === undefined ? undefined : parseYesOrNo(values.answer),
    maxDbKb: values["max-db-kb"] === undefined ? undefined : parseMaxDbKb(values["max-db-kb"]),
    serve: readServeOptions(values, target),
  };
}

/** Options of the acts, which a served demo does not have. */
const actOptions = ["out", "answer", "json", "keep", "resume", "max-db-kb"] as const;

function readServeOptions(values: ReturnType<typeof parseCommandLine>["values"], target: string): Options["serve"] {
  if (!values.serve) {
    for (const name of ["store", "port"] as const)
      if (values[name] !== undefined) throw new UsageError(`--${name} is an option of --serve. Add --serve.`);
    return undefined;
  }
  for (const name of actOptions)
    if (values[name] !== undefined && values[name] !== false)
      throw new UsageError(`--${name} is not an option of --serve. Remove one of the two.`);
  const store = values.store === undefined ? getDefaultStore() : resolve(baseFolder, values.store);
  // The agent would read the database as a file of the tree, and SQLite loses its locks when its process does so.
  if (!relative(target, store).startsWith(".."))
    throw new UsageError(
      `--store "${store}" is in the folder that the agent reads. Pass a path outside of "${target}".`,
    );
  return {
    store,
    port: values.port === undefined ? undefined : parsePort(values.port),
  };
}

/** Returns the path of the store that the served demo uses by default, by the conventions of XDG. */
function getDefaultStore(): string {
  const state = process.env["XDG_STATE_HOME"] ?? join(homedir(), ".local", "state");
  return join(state, "statewright-demo", "threads.db");
}

function parsePort(word: string): number {
  const number = Number(word);
  if (Number.isInteger(number) && number >= 0 && number <= 65_535) return number;
  throw new UsageError(`--port: expected an integer from 0 to 65535, got "${word}". Pass a port.`);
}

function parseCommandLine(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        out: { type: "string" },
        model: { type: "string" },
        answer: { type: "string" },
        keep: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        resume: { type: "string" },
        "max-db-kb": { type: "string" },
        serve: { type: "boolean", default: false },
        store: { type: "string" },
        port: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

function checkFolder(path: string): string {
  const stats = findStats(path);
  if (stats === undefined) throw new UsageError(`Folder "${path}" does not exist. Pass the path of a source tree.`);
  if (!stats.isDirectory())
    throw new UsageError(`"${path}" is a file, not a folder. Use its folder "${dirname(path)}".`);
  try {
    accessSync(path, constants.R_OK | constants.X_OK);
    readdirSync(path);
  } catch {
    throw new UsageError(`Folder "${path}" is not readable. Fix its permissions.`);
  }
  return path;
}

/** Returns the stats of a path; undefined if the path is missing or not accessible. */
function findStats(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Returns the system error code, or the error as a string. */
export function getErrorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

function checkStateFolder(path: string): string {
  if (existsSync(join(path, "demo.json"))) return path;
  throw createNotStoppedError(path);
}

function createNotStoppedError(path: string): UsageError {
  return new UsageError(`"${path}" does not contain a stopped demo. Pass the folder printed by the stopped demo.`);
}

function checkReportFile(path: string): string {
  if (findStats(path)?.isDirectory())
    throw new UsageError(`--out "${path}" is a folder. Pass the path of a file, such as "${join(path, "report.md")}".`);
  const parent = dirname(path);
  if (findStats(parent)?.isDirectory() !== true)
    throw new UsageError(`--out: folder "${parent}" does not exist. Create the folder or pass another path.`);
  try {
    accessSync(parent, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new UsageError(
      `--out: folder "${parent}" is not writable (${getErrorCode(error)}). Fix its permissions or pass another path.`,
    );
  }
  return path;
}

/** Environment variables with the API keys, as documented by the provider packages. */
const keys: Readonly<Record<string, string>> = {
  anthropic: "ANTHROPIC_API_KEY",
  google: "GOOGLE_GENERATIVE_AI_API_KEY",
  mistral: "MISTRAL_API_KEY",
  openai: "OPENAI_API_KEY",
  xai: "XAI_API_KEY",
};

function checkModelName(name: string): string {
  const [, provider] = /^([a-z0-9-]+)\/.+$/.exec(name) ?? [];
  if (provider === undefined)
    throw new UsageError(`--model: expected "provider/name", got "${name}". Pass the model as "provider/name".`);
  const key = keys[provider];
  if (key !== undefined && (process.env[key] ?? "") === "")
    throw new UsageError(`--model ${name} needs a key. Set ${key} in the environment, or remove --model.`);
  return name;
}

/** Returns the environment variable of a provider's key, if known. */
export function getKeyVariable(model: string): string | undefined {
  return keys[model.split("/")[0] ?? ""];
}

/** Returns the destination of the requests of a model, if known. */
export function getRequestDestination(model: string): string {
  const provider = model.split("/")[0] ?? "";
  return process.env[`${provider.toUpperCase()}_BASE_URL`] ?? `the API of ${provider}`;
}

function parseYesOrNo(word: string): "yes" | "no" {
  if (word === "yes" || word === "no") return word;
  throw new UsageError(`--answer: expected yes or no, got "${word}". Pass yes or no.`);
}

function parseMaxDbKb(word: string): number {
  const number = Number(word);
  if (Number.isInteger(number) && number >= 128) return number;
  throw new UsageError(`--max-db-kb: expected an integer ≥ 128, got "${word}". Pass a larger integer.`);
}

/** Contents of demo.json, saved next to the database of a stopped demo. */
export interface StoppedDemo {
  readonly target: string;
  readonly report: string;
  readonly model: string | undefined;
}

const Stopped = z.object({ target: z.string(), report: z.string(), model: z.string().optional() });

/**
 * Reads demo.json of a stopped demo. Throws {@link UsageError} for an invalid folder and for a missing source tree.
 */
export function readStopped(path: string): StoppedDemo {
  const { target, report, model } = parseStoppedDemo(path);
  checkFolder(target);
  return { target, report, model };
}

function parseStoppedDemo(path: string): z.infer<typeof Stopped> {
  try {
    return Stopped.parse(JSON.parse(readFileSync(join(path, "demo.json"), "utf8")));
  } catch {
    throw createNotStoppedError(path);
  }
}
