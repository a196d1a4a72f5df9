/** Tools from an OpenAPI document: each selected operation becomes a tool that sends an HTTP request. */

import {
  isStatewrightError,
  StatewrightError,
  type Tool,
  type ToolCall,
  type ToolRuntime,
  type World,
} from "@statewright/core";
import {
  checkOptions,
  invalidOption,
  listOptionNames,
  type ToolSpecParts,
  toolSpec,
  toSnakeCase,
} from "@statewright/core/adapter";
import { type FetchOptions, fetchUrl } from "@statewright/host";
import { jsonSchema } from "@statewright/json-schema";
import { type Document, readDocument } from "./document.ts";
import {
  createRequestPlan,
  type DocumentOperation,
  formatOperation,
  getMethodDefaults,
  listOperations,
  type OpenApiOperation,
  type OperationFilter,
  type RequestPlan,
} from "./operation.ts";
import { createRequest } from "./request.ts";
import { type RequestContext, toOutput, toRequestError } from "./response.ts";
import {
  checkAuth,
  getInjectionKinds,
  type InjectedSecrets,
  type OpenApiAuth,
  resolveCredentials,
  resolveSecrets,
} from "./security.ts";

/** Overrides of single tools. */
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

/** Options of {@link loadOpenApi}. */
export interface OpenApiOptions extends Pick<FetchOptions, "allowPrivate" | "allowHosts" | "maxBytes" | "resolve"> {
  /** Filter of the operations. Default: all. */
  readonly operations?: OperationFilter;
  /** Base URL of requests. Default: the first server of the document. */
  readonly baseUrl?: string;
  /**
   * Secret names by security scheme, resolved from the secrets of the run at each call; `false` sends no credentials.
   * An operation with a required scheme that is missing here is not supported.
   */
  readonly auth?: Readonly<Record<string, OpenApiAuth>> | false;
  /** Tool names. Default: the `operationId` in snake_case. */
  readonly names?: (operation: OpenApiOperation) => string | undefined;
  /** Prefix of every name, as in `github_list_issues`. */
  readonly prefix?: string;
  /** Headers of every request, without secrets. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Sends the idempotency key of the call with POST and PATCH, as `Idempotency-Key` or in the given header. Set this
   * option only if the server processes a key once: the effect of these tools is then `idempotent`.
   */
  readonly idempotencyKey?: boolean | string;
  /** Maximum redirects. Default 0. */
  readonly maxRedirects?: number;
  /** Timeout of an attempt in milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
  /** Returns the overrides of a single tool. */
  readonly tool?: (operation: OpenApiOperation) => OpenApiToolParts | undefined;
  /**
   * Handling of an operation that cannot become a tool: throw (`refuse`, default), or list it in `skipped` (`skip`).
   */
  readonly onUnsupported?: "refuse" | "skip";
  /** Expected `digest` of the document. A different digest throws `invalid_option`. */
  readonly pin?: string;
  /** Clock, random source and log. Default: the system world. */
  readonly world?: World;
}

/** Tools of a document. */
export interface OpenApiTools {
  readonly tools: readonly (Tool & { readonly name: string })[];
  /** Operations of the tools, in the same order. */
  readonly operations: readonly OpenApiOperation[];
  /** Skipped operations, with the reason. */
  readonly skipped: readonly { readonly operation: OpenApiOperation; readonly reason: string }[];
  /** SHA-256 of the document, for `pin`. */
  readonly digest: string;
}

const knownOptions = listOptionNames<OpenApiOptions>({
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
  onUnsupported: true,
  pin: true,
  allowPrivate: true,
  allowHosts: true,
  maxBytes: true,
  resolve: true,
  world: true,
});

/**
 * Creates tools from an OpenAPI 3.0 or 3.1 document: an object, a file path, or a URL. Throws `invalid_option` for an
 * unreadable document, and `invalid_tool` for an unsupported operation or two tools with the same name.
 */
export async function loadOpenApi(source: string | URL | object, options: OpenApiOptions = {}): Promise<OpenApiTools> {
  checkOptions("loadOpenApi", options, knownOptions);
  checkOptions("loadOpenApi operations", options.operations ?? {}, ["ids", "tags", "methods", "where"]);
  const { allowPrivate, allowHosts, resolve, world, onUnsupported = "refuse" } = options;
  const document = await readDocument(source, omitUndefined({ allowPrivate, allowHosts, resolve, world }));
  if (options.pin !== undefined && options.pin !== document.digest) throw createPinError(document, options.pin);
  checkAuth(document, options.auth ?? {});
  const created: { readonly tool: Tool & { readonly name: string }; readonly found: DocumentOperation }[] = [];
  const skipped: { operation: OpenApiOperation; reason: string }[] = [];
  for (const found of listOperations(document, options.operations ?? {})) {
    try {
      created.push({ tool: createTool(document, found, options), found });
    } catch (error) {
      const failure = addOperationName(error, found);
      if (onUnsupported !== "skip" || !isStatewrightError(failure) || failure.code !== "invalid_tool") throw failure;
      skipped.push({ operation: found.operation, reason: failure.message });
    }
  }
  const byName = new Map<string, OpenApiOperation>();
  for (const { tool, found } of created) {
    const other = byName.get(tool.spec.name);
    if (other !== undefined) throw createDuplicateError(tool.spec.name, [other, found.operation], document);
    byName.set(tool.spec.name, found.operation);
  }
  return {
    tools: created.map(({ tool }) => tool),
    operations: created.map(({ found }) => found.operation),
    skipped,
    digest: document.digest,
  };
}

function createTool(
  document: Document,
  found: DocumentOperation,
  options: OpenApiOptions,
): Tool & { readonly name: string } {
  const { operation } = found;
  const { id, method, path } = operation;
  const { auth = {}, baseUrl, idempotencyKey = false, prefix, maxRedirects = 0 } = options;
  const sendsKey = idempotencyKey !== false && (method === "POST" || method === "PATCH");
  const keyHeader = sendsKey ? (typeof idempotencyKey === "string" ? idempotencyKey : "idempotency-key") : undefined;
  const ownHeaders = [...Object.keys(options.headers ?? {}), ...(keyHeader === undefined ? [] : [keyHeader])];
  const plan = createRequestPlan(document, found, { baseUrl, auth, ownHeaders });
  checkSecretDestination(document, plan, baseUrl, operation);
  const methodDefaults = getMethodDefaults(method);
  const originalName = id ?? `${method.toLowerCase()} ${path}`;
  const name = toSnakeCase([prefix, options.names?.(operation) ?? originalName].filter(Boolean).join("_"));
  const overrides = options.tool?.(operation) ?? {};
  const hosts = options.allowHosts ?? [plan.base.hostname.replace(/^\[(.*)\]$/, "$1")];
  const effect = overrides.effect ?? (sendsKey ? "idempotent" : methodDefaults.effect);
  const timeoutMs = overrides.timeoutMs ?? options.timeoutMs ?? 30_000;
  const spec = toolSpec({
    retry: { attempts: 3, on: ["unavailable"] },
    ...overrides,
    name,
    ...(name === originalName ? {} : { originalName }),
    description: overrides.description ?? createDescription(operation),
    input: jsonSchema(plan.input),
    inject: getInjectionKinds(plan.credentials),
    effect,
    safety: { access: methodDefaults.access, network: hosts, filesystem: "none", ...overrides.safety },
    timeoutMs,
  });
  const call = async (_state: unknown, runtime: ToolRuntime, { args }: ToolCall): Promise<unknown> => {
    const credentials = resolveCredentials(plan.credentials, (runtime.injected ?? {}) as InjectedSecrets);
    const context: RequestContext = { name: formatOperation(operation), effect, credentials, now: runtime.clock.now() };
    const { url, headers, body } = await createRequest(plan, args, runtime, {
      path,
      credentials,
      headers: options.headers ?? {},
      keyHeader,
    });
    const { allowPrivate, maxBytes, resolve, world } = options;
    const fetchOptions = { allowPrivate, maxBytes, resolve, world, body, method, headers, maxRedirects, timeoutMs };
    try {
      return toOutput(
        await fetchUrl(url, { ...omitUndefined(fetchOptions), allowHosts: hosts, signal: runtime.signal }),
        context,
      );
    } catch (error) {
      throw toRequestError(error, context, { maxRedirects });
    }
  };
  return Object.freeze({
    name: spec.name,
    spec,
    call,
    ...(plan.credentials.length === 0
      ? {}
      : {
          resolve: (source: Parameters<NonNullable<Tool["resolve"]>>[0]) => resolveSecrets(plan.credentials, source),
        }),
  });
}

/**
 * Throws `invalid_option` if a secret would go to an origin other than the document's or the given `baseUrl`: a
 * foreign document must not choose the destination of a secret.
 */
function checkSecretDestination(
  document: Document,
  plan: RequestPlan,
  baseUrl: string | undefined,
  operation: OpenApiOperation,
): void {
  if (baseUrl !== undefined || plan.credentials.length === 0 || document.url === undefined) return;
  if (document.url.origin === plan.base.origin) return;
  throw invalidOption({
    where: `loadOpenApi: ${formatOperation(operation)} of ${document.source}`,
    option: "baseUrl",
    expected: "set for a server with another origin than the document",
    found: `none: a secret would be sent to ${plan.base.origin}`,
    fix: "Set baseUrl to the destination of the secrets",
  });
}

function createDescription({ summary, description, deprecated, method, path }: OpenApiOperation): string {
  const joined = [...new Set([summary, description].filter((text) => text !== undefined))].join("\n\n");
  const text = joined === "" ? `${method} ${path}` : joined;
  return deprecated ? `Deprecated. ${text}` : text;
}

function createDuplicateError(
  name: string,
  [first, second]: readonly [OpenApiOperation, OpenApiOperation],
  { source }: Document,
): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `two operations of ${source} have the tool name "${name}": ${formatOperation(first)} and ${formatOperation(second)}`,
    next: "Rename one of them by names: (operation) => …, or exclude it",
    place: { tool: name },
  });
}

/** Adds the operation to an `invalid_tool` error. */
function addOperationName(error: unknown, { operation }: DocumentOperation): unknown {
  if (!isStatewrightError(error) || error.code !== "invalid_tool" || error.message.includes(operation.path))
    return error;
  return new StatewrightError("invalid_tool", {
    what: `${formatOperation(operation)} cannot become a tool: ${error.message}`,
    next: 'Fix the document, exclude the operation, or set onUnsupported: "skip"',
    cause: error,
  });
}

function createPinError({ source, digest }: Document, pin: string): StatewrightError {
  return invalidOption({
    where: `loadOpenApi of ${source}`,
    option: "pin",
    expected: `the digest of the document, ${digest}`,
    got: pin,
    fix: "Review the changes of the document, then set pin to its digest",
  });
}

/** Returns the options without undefined values. */
function omitUndefined<Options extends object>(
  options: Options,
): { [Name in keyof Options]: Exclude<Options[Name], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Options]: Exclude<Options[Name], undefined>;
  };
}
