/** Options of a server. */
import type { Engine, Log } from "@statewright/core";
import {
  checkChoice,
  checkFlag,
  checkFunction,
  checkOptions,
  checkStrings,
  invalidOption,
  listOptionNames,
} from "@statewright/core/adapter";
import { loopback } from "@statewright/host/access";
import type { ServerAccess } from "./access/server-access.ts";
import type { CorsOptions } from "./http/cors.ts";
import type { ServerLimits } from "./http/limits.ts";
import type { RateLimit, RateLimitOptions } from "./http/rate-limit.ts";
import type { Protocol } from "./http/route.ts";
import type { ServiceOptions } from "./service/service-options.ts";

/** Options of `serve`. */
export interface ServeOptions
  extends Pick<ServiceOptions, "expose" | "redact" | "exposeErrors" | "cursorKey" | "onAudit" | "schedules"> {
  /** Engine whose graphs and threads are served. */
  readonly engine: Engine;
  /** Who may do what. `"open"` accepts everybody. Default: each request is refused with 401. */
  readonly access?: ServerAccess | "open" | undefined;
  /** Protocols beside the native API, such as `langgraph()`. Default: none. */
  readonly protocols?: readonly Protocol[];
  /** Path of the mount in the URL of the requests, such as `/agents`. Default `""`: the host cuts it, or has none. */
  readonly basePath?: string;
  /** URL of the server for its clients, such as `https://agents.example/v1`: each URL that the server names begins so. */
  readonly publicUrl?: string;
  /** Addresses of the proxies whose `x-forwarded-*` headers count, for `listen`. Default: none. */
  readonly trustProxy?: readonly string[];
  /** `serve`, or `readOnly`: everything that changes something is refused. Default `serve`. */
  readonly role?: "serve" | "readOnly";
  /** Limits of requests and streams. Default: those of `ServerLimits`. */
  readonly limits?: Partial<ServerLimits>;
  /** Pages of other origins that may call the server. Default: none. */
  readonly cors?: CorsOptions;
  /** Host names of the server, without port. Default: loopback names and the host of `publicUrl`. */
  readonly hosts?: readonly string[];
  /** Rate limit: a function, or requests per caller and interval. Default: none. */
  readonly limit?: RateLimit | RateLimitOptions;
  /** Receives the log line of each request, and failures. Default: the log of the engine's world. */
  readonly log?: Log;
}

const names = listOptionNames<ServeOptions>({
  engine: true,
  access: true,
  protocols: true,
  basePath: true,
  publicUrl: true,
  trustProxy: true,
  role: true,
  expose: true,
  limits: true,
  cors: true,
  hosts: true,
  exposeErrors: true,
  redact: true,
  limit: true,
  onAudit: true,
  cursorKey: true,
  schedules: true,
  log: true,
});

/** Places of a server: its path, its host names, and its public origin. */
export interface ServerPlace {
  readonly basePath: string;
  readonly publicPath: string;
  readonly publicOrigin: string | undefined;
  readonly hosts: ReadonlySet<string>;
}

/** Checks the options that no other part checks. Throws `invalid_option`. */
export function checkServeOptions(options: ServeOptions): void {
  checkOptions("serve", options, names);
  const { protocols = [], role = "serve", cors, trustProxy, hosts, exposeErrors = false, log } = options;
  if (!Array.isArray(protocols))
    throw invalidOption({ where: "serve", option: "protocols", expected: "a list of protocols", got: protocols });
  checkChoice("serve", { role }, ["serve", "readOnly"]);
  checkFlag("serve", { exposeErrors });
  checkFunction("serve", { log });
  checkStrings("serve", { trustProxy, hosts });
  if (cors !== undefined) {
    checkOptions("serve cors", cors, ["origins"]);
    checkStrings("serve cors", { origins: cors.origins });
    for (const origin of cors.origins) checkOrigin(origin);
  }
}

function checkOrigin(origin: string): void {
  if (URL.canParse(origin) && new URL(origin).origin === origin) return;
  throw invalidOption({
    where: "serve cors",
    option: "origins",
    expected: "exact origins, such as https://app.example",
    got: origin,
    fix: "List each origin with scheme and host, without a path; * and null are not origins",
  });
}

const basePathPattern = /^(?:\/[A-Za-z0-9_.~-]+)*$/;

/** Resolves the places of a server. Throws `invalid_option` for a base path or a public URL of another form. */
export function resolvePlace({ basePath = "", publicUrl, hosts }: ServeOptions): ServerPlace {
  if (typeof basePath !== "string" || !basePathPattern.test(basePath))
    throw invalidOption({
      where: "serve",
      option: "basePath",
      expected: 'a path such as "/agents", or ""',
      got: basePath,
    });
  if (publicUrl !== undefined && !(URL.canParse(publicUrl) && /^https?:$/.test(new URL(publicUrl).protocol)))
    throw invalidOption({ where: "serve", option: "publicUrl", expected: "an http or https URL", got: publicUrl });
  const url = publicUrl === undefined ? undefined : new URL(publicUrl);
  const known = hosts ?? [...loopback, ...(url === undefined ? [] : [url.hostname])];
  return {
    basePath,
    publicPath: url === undefined ? basePath : url.pathname.replace(/\/+$/, ""),
    publicOrigin: url?.origin,
    hosts: new Set(known.map((host) => host.toLowerCase())),
  };
}
