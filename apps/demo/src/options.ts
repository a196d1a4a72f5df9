/** What the command line says, checked before anything starts: a wrong word ends the demo with one sentence. */
import { accessSync, constants, existsSync, readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import * as z from "zod";

export interface Options {
  /** The source tree that is audited. */
  readonly target: string;
  /** Where the report goes; beside the database when it is not given. */
  readonly out: string | undefined;
  /** A real model, as `provider/name`; the rehearsed one when absent. */
  readonly model: string | undefined;
  readonly keep: boolean;
  /** The folder of a stopped demo to go on with. */
  readonly resume: string | undefined;
  /** The answer where there is no terminal to ask at, or where it was given before. */
  readonly answer: "yes" | "no" | undefined;
  readonly maxDbKb: number | undefined;
}

/** A wrong command line: its message is all that the person needs. */
export class UsageError extends Error {}

export const usage = `npm run demo [-- [folder] [options]]

  folder                   the source tree or git repository to audit; this repository by default

  --out <file>             write the report there instead of into a temporary folder
  --model <provider/name>  use a real model, with its key from the environment; sends parts of the tree to it
  --answer <yes|no>        answer the question in place of a person
  --keep                   keep the database, and print where it is
  --resume <folder>        go on with a demo that was stopped
  --max-db-kb <number>     play a full disk: the database may not grow larger than this
  --help                   this text
`;

/** Where relative paths start: the folder in which the person typed the command, which npm leaves in INIT_CWD. */
const here = process.env["INIT_CWD"] ?? process.cwd();

const repository = resolve(import.meta.dirname, "../../..");

/** Read the command line; `help` for `--help`. Throws {@link UsageError}. */
export function readOptions(argv: readonly string[]): Options | "help" {
  const { values, positionals } = parsed(argv);
  if (values.help) return "help";
  if (positionals.length > 1)
    throw new UsageError(`One folder at a time, please: got ${positionals.map((word) => `"${word}"`).join(", ")}.`);
  const resumed = values.resume === undefined ? undefined : folder(resolve(here, values.resume));
  if (resumed !== undefined && (positionals.length > 0 || values.model !== undefined))
    throw new UsageError("--resume goes on with the folder and the model that the demo began with: leave them out.");
  const target = positionals[0] === undefined ? repository : folder(resolve(here, positionals[0]));
  return {
    target,
    out: values.out === undefined ? undefined : reportFile(resolve(here, values.out)),
    model: values.model === undefined ? undefined : modelName(values.model),
    keep: values.keep,
    resume: resumed === undefined ? undefined : stateFolder(resumed),
    answer: values.answer === undefined ? undefined : yesOrNo(values.answer),
    maxDbKb: values["max-db-kb"] === undefined ? undefined : atLeast128(values["max-db-kb"]),
  };
}

function parsed(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        out: { type: "string" },
        model: { type: "string" },
        answer: { type: "string" },
        keep: { type: "boolean", default: false },
        resume: { type: "string" },
        "max-db-kb": { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

function folder(path: string): string {
  const found = statOf(path);
  if (found === undefined) throw new UsageError(`There is no folder "${path}". Give the path of a source tree.`);
  if (!found.isDirectory())
    throw new UsageError(`"${path}" is a file, not a folder. Its folder is "${dirname(path)}".`);
  try {
    accessSync(path, constants.R_OK | constants.X_OK);
    readdirSync(path);
  } catch {
    throw new UsageError(`The folder "${path}" cannot be read. Look at its permissions.`);
  }
  return path;
}

/** What lies at a path; undefined for nothing, and for what a folder on the way hides. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Why the system refused, in its own short word. */
export function reasonOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

function stateFolder(path: string): string {
  if (existsSync(join(path, "demo.json"))) return path;
  throw notStopped(path);
}

function notStopped(path: string): UsageError {
  return new UsageError(
    `"${path}" does not hold a stopped demo. Give the folder that the demo printed when it stopped.`,
  );
}

function reportFile(path: string): string {
  if (statOf(path)?.isDirectory())
    throw new UsageError(`--out "${path}" is a folder. Give the path of a file, such as "${join(path, "report.md")}".`);
  const parent = dirname(path);
  if (statOf(parent)?.isDirectory() !== true) throw new UsageError(`--out: there is no folder "${parent}".`);
  try {
    accessSync(parent, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new UsageError(`--out: the folder "${parent}" cannot be written (${reasonOf(error)}).`);
  }
  return path;
}

/** Variables in which providers look for their key, as their packages document it. */
const keys: Readonly<Record<string, string>> = {
  anthropic: "ANTHROPIC_API_KEY",
  google: "GOOGLE_GENERATIVE_AI_API_KEY",
  mistral: "MISTRAL_API_KEY",
  openai: "OPENAI_API_KEY",
  xai: "XAI_API_KEY",
};

function modelName(name: string): string {
  const [, provider] = /^([a-z0-9-]+)\/.+$/.exec(name) ?? [];
  if (provider === undefined)
    throw new UsageError(`--model "${name}" is not the name of a model. Write it as "provider/name".`);
  const key = keys[provider];
  if (key !== undefined && (process.env[key] ?? "") === "")
    throw new UsageError(`--model ${name} needs a key: set ${key} in the environment, or leave --model out.`);
  return name;
}

/** The variable that holds the key of a model's provider, where it is known. */
export function keyVariable(model: string): string | undefined {
  return keys[model.split("/")[0] ?? ""];
}

/** Where the requests of a model go, as far as it is known here. */
export function whereTo(model: string): string {
  const provider = model.split("/")[0] ?? "";
  return process.env[`${provider.toUpperCase()}_BASE_URL`] ?? `the API of ${provider}`;
}

function yesOrNo(word: string): "yes" | "no" {
  if (word === "yes" || word === "no") return word;
  throw new UsageError(`--answer is "${word}". Say yes or no.`);
}

function atLeast128(word: string): number {
  const number = Number(word);
  if (Number.isInteger(number) && number >= 128) return number;
  throw new UsageError(`--max-db-kb is "${word}". Give a whole number from 128.`);
}

/** What a stopped demo leaves beside its database, so that it can go on. */
export interface Stopped {
  readonly target: string;
  readonly report: string;
  readonly model: string | undefined;
}

const Stopped = z.object({ target: z.string(), report: z.string(), model: z.string().optional() });

/** Read what a stopped demo left. Throws {@link UsageError} for what is none, and for a tree that is no longer there. */
export function readStopped(path: string): Stopped {
  const { target, report, model } = parsedStopped(path);
  folder(target);
  return { target, report, model };
}

function parsedStopped(path: string): z.infer<typeof Stopped> {
  try {
    return Stopped.parse(JSON.parse(readFileSync(join(path, "demo.json"), "utf8")));
  } catch {
    throw notStopped(path);
  }
}
