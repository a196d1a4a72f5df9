/** Tools from an OpenAPI document: each operation that is wanted becomes one, and asks its server when it is called. */
import {
  checkOptions,
  isStatewrightError,
  optionNames,
  StatewrightError,
  snakeCaseOf,
  type Tool,
  type ToolCall,
  type ToolRuntime,
  type ToolSpecParts,
  toolSpec,
  type World,
} from "@statewright/core";
import { type FetchOptions, fetchUrl } from "@statewright/host";
import { jsonSchema } from "../json-schema.ts";
import { type Document, readDocument } from "./document.ts";
import {
  type FoundOperation,
  nameOf,
  natureOf,
  type OpenApiOperation,
  type OperationFilter,
  operationsOf,
  planOf,
  type RequestPlan,
} from "./operation.ts";
import { requestOf } from "./request.ts";
import { type Asked, failure, outputOf } from "./response.ts";
import {
  checkAuth,
  type InjectedSecrets,
  injectedSecrets,
  injectionKinds,
  type OpenApiAuth,
  openCredentials,
} from "./security.ts";

export type { OpenApiOperation, OperationFilter } from "./operation.ts";
export type { OpenApiAuth } from "./security.ts";

/** What may be said otherwise of one tool than its operation says. */
export type OpenApiToolParts = Partial<
  Pick<
    ToolSpecParts,
    | "label"
    | "description"
    | "effect"
    | "safety"
    | "retry"
    | "timeoutMs"
    | "graceMs"
    | "onError"
    | "limits"
    | "execution"
  >
>;

/** What `loadOpenApi` takes besides the document. */
export interface OpenApiOptions extends Pick<FetchOptions, "allowPrivate" | "allowHosts" | "maxBytes" | "resolve"> {
  /** Which operations become tools; all by default. */
  readonly operations?: OperationFilter;
  /** Where they are asked; the first server of the document by default. */
  readonly baseUrl?: string;
  /**
   * The names of secrets by security scheme, looked up in the secrets of the run when a call is made; `false` asks without.
   * An operation that wants a scheme which is not given is refused.
   */
  readonly auth?: Readonly<Record<string, OpenApiAuth>> | false;
  /** Names of tools; the `operationId` in snake_case by default. */
  readonly names?: (operation: OpenApiOperation) => string | undefined;
  /** Said before every name, as in `github_list_issues`. */
  readonly prefix?: string;
  /** Headers of every request; none of them is a secret. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Send the key of the call with POST and PATCH, as `Idempotency-Key` or in the header that is named. It says that the server
   * does a call with the same key once: these tools are `idempotent` then.
   */
  readonly idempotencyKey?: boolean | string;
  /** How many redirects are followed; none by default. */
  readonly maxRedirects?: number;
  /** Milliseconds for one attempt; 30,000 by default. */
  readonly timeoutMs?: number;
  /** What is otherwise for single tools. */
  readonly tool?: (operation: OpenApiOperation) => OpenApiToolParts | undefined;
  /** What becomes of an operation that cannot become a tool: loading fails (default), or it is left out and told of. */
  readonly unfit?: "refuse" | "skip";
  /** The `digest` that the document must have: one that has changed is refused. */
  readonly pin?: string;
  readonly world?: World;
}

/** The tools of a document. */
export interface OpenApiTools {
  readonly tools: readonly Tool[];
  /** The operations of the tools, in the order of the tools. */
  readonly operations: readonly OpenApiOperation[];
  /** Operations that were left out, and why. */
  readonly skipped: readonly { readonly operation: OpenApiOperation; readonly why: string }[];
  /** SHA-256 of the document, to pin it. */
  readonly digest: string;
}

const names = optionNames<OpenApiOptions>({
  operations: true,
  baseUrl: true,
  auth: true,
  names: true,
  prefix: true,
  headers: true,
  idempotencyKey: true,
  maxRedirects: true,
  timeoutMs: true,
  tool: true,
  unfit: true,
  pin: true,
  allowPrivate: true,
  allowHosts: true,
  maxBytes: true,
  resolve: true,
  world: true,
});

/**
 * Make tools of a document of OpenAPI 3.0 or 3.1: an object, the path of a file, or a URL. Throws `invalid_option` for a
 * document that cannot be read, and `invalid_tool` for an operation that cannot become a tool or two with one name.
 */
export async function loadOpenApi(source: string | URL | object, options: OpenApiOptions = {}): Promise<OpenApiTools> {
  checkOptions("loadOpenApi", options, names);
  checkOptions("the operations of loadOpenApi", options.operations ?? {}, ["ids", "tags", "methods", "where"]);
  const { allowPrivate, allowHosts, resolve, world, unfit = "refuse" } = options;
  const document = await readDocument(source, given({ allowPrivate, allowHosts, resolve, world }));
  if (options.pin !== undefined && options.pin !== document.digest) throw changed(document);
  checkAuth(document, options.auth ?? {});
  const made: { readonly tool: Tool; readonly found: FoundOperation }[] = [];
  const skipped: { operation: OpenApiOperation; why: string }[] = [];
  for (const found of operationsOf(document, options.operations ?? {})) {
    try {
      made.push({ tool: toolOf(document, found, options), found });
    } catch (error) {
      const why = named(error, found);
      if (unfit !== "skip" || !isStatewrightError(why) || why.code !== "invalid_tool") throw why;
      skipped.push({ operation: found.operation, why: why.message });
    }
  }
  const byName = new Map<string, OpenApiOperation>();
  for (const { tool, found } of made) {
    const other = byName.get(tool.spec.name);
    if (other !== undefined) throw doubled(tool.spec.name, other, found.operation, document);
    byName.set(tool.spec.name, found.operation);
  }
  return {
    tools: made.map(({ tool }) => tool),
    operations: made.map(({ found }) => found.operation),
    skipped,
    digest: document.digest,
  };
}

function toolOf(document: Document, found: FoundOperation, options: OpenApiOptions): Tool {
  const { operation } = found;
  const { id, method, path } = operation;
  const { auth = {}, baseUrl, idempotencyKey = false, prefix, maxRedirects = 0 } = options;
  const takesKey = idempotencyKey !== false && (method === "POST" || method === "PATCH");
  const keyHeader = takesKey ? (typeof idempotencyKey === "string" ? idempotencyKey : "idempotency-key") : undefined;
  const ownHeaders = [...Object.keys(options.headers ?? {}), ...(keyHeader === undefined ? [] : [keyHeader])];
  const plan = planOf(document, found, { baseUrl, auth, ownHeaders });
  checkHome(document, plan, baseUrl, operation);
  const nature = natureOf(method);
  const originalName = id ?? `${method.toLowerCase()} ${path}`;
  const name = snakeCaseOf([prefix, options.names?.(operation) ?? originalName].filter(Boolean).join("_"));
  const own = options.tool?.(operation) ?? {};
  const hosts = options.allowHosts ?? [plan.base.hostname.replace(/^\[(.*)\]$/, "$1")];
  const effect = own.effect ?? (takesKey ? "idempotent" : nature.effect);
  const timeoutMs = own.timeoutMs ?? options.timeoutMs ?? 30_000;
  const spec = toolSpec({
    retry: { attempts: 3, on: ["unavailable"] },
    ...own,
    name,
    ...(name === originalName ? {} : { originalName }),
    description: own.description ?? descriptionOf(operation),
    input: jsonSchema(plan.input),
    inject: injectionKinds(plan.credentials),
    effect,
    safety: { access: nature.access, network: hosts, filesystem: "none", ...own.safety },
    timeoutMs,
  });
  const call = async (_state: unknown, runtime: ToolRuntime, { args }: ToolCall): Promise<unknown> => {
    const credentials = openCredentials(plan.credentials, (runtime.injected ?? {}) as InjectedSecrets);
    const asked: Asked = { name: nameOf(operation), effect, credentials, now: runtime.clock.now() };
    const { url, headers, body } = await requestOf(plan, args, runtime, {
      path,
      credentials,
      headers: options.headers ?? {},
      keyHeader,
    });
    const { allowPrivate, maxBytes, resolve, world } = options;
    const way = { allowPrivate, maxBytes, resolve, world, body, method, headers, maxRedirects, timeoutMs };
    try {
      return outputOf(await fetchUrl(url, { ...given(way), allowHosts: hosts, signal: runtime.signal }), asked);
    } catch (error) {
      throw failure(error, asked, maxRedirects > 0);
    }
  };
  return Object.freeze({
    spec,
    call,
    ...(plan.credentials.length === 0
      ? {}
      : {
          resolve: (source: Parameters<NonNullable<Tool["resolve"]>>[0]) => injectedSecrets(plan.credentials, source),
        }),
  });
}

/** A secret goes where the caller says, or where the document itself came from: not where a document from elsewhere leads. */
function checkHome(
  document: Document,
  plan: RequestPlan,
  baseUrl: string | undefined,
  operation: OpenApiOperation,
): void {
  if (baseUrl !== undefined || plan.credentials.length === 0 || document.url === undefined) return;
  if (document.url.origin === plan.base.origin) return;
  throw new StatewrightError("invalid_option", {
    what: `${nameOf(operation)} of ${document.from} would send a secret to ${plan.base.origin}, where the document did not come from`,
    next: "Give baseUrl, so that secrets go where you say",
  });
}

function descriptionOf({ summary, description, deprecated, method, path }: OpenApiOperation): string {
  const said = [...new Set([summary, description].filter((text) => text !== undefined))].join("\n\n");
  const text = said === "" ? `${method} ${path}` : said;
  return deprecated ? `Deprecated. ${text}` : text;
}

function doubled(name: string, one: OpenApiOperation, other: OpenApiOperation, { from }: Document): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `two operations of ${from} would be named "${name}": ${nameOf(one)} and ${nameOf(other)}`,
    next: "Give names: (operation) => … with a name of its own for one of them, or leave one out",
    place: { tool: name },
  });
}

/** What is wrong with a tool says which operation it would have been. */
function named(error: unknown, { operation }: FoundOperation): unknown {
  if (!isStatewrightError(error) || error.code !== "invalid_tool" || error.message.includes(operation.path))
    return error;
  return new StatewrightError("invalid_tool", {
    what: `${nameOf(operation)} cannot become a tool: ${error.message}`,
    next: 'Mend the document, leave the operation out, or give unfit: "skip"',
    cause: error,
  });
}

function changed({ from, digest }: Document): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the OpenAPI document ${from} is not the one that was pinned: its digest is ${digest}`,
    next: "Read what has changed, then pin this one",
  });
}

/** Options without those that are undefined. */
function given<Options extends object>(
  options: Options,
): { [Name in keyof Options]: Exclude<Options[Name], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Options]: Exclude<Options[Name], undefined>;
  };
}
