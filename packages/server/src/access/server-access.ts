/** Access options of a server: authentication, rights, and the context of runs. */
import { checkChoice, checkFunction, checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";
import { type Authenticate, type AuthenticationOptions, createAuthenticator } from "@statewright/host/access";
import type { AccessRequest, Caller } from "./caller.ts";

/** Who may do what on a server. Set one of `authenticate`, `token` and `tokens`. */
export interface ServerAccess extends AuthenticationOptions {
  /**
   * Returns true if the caller has the right to an action. Asked for each request, and again for streams. Default: each
   * caller may do everything with the threads of its tenant. The action `admin` also needs the scope `admin`.
   */
  readonly authorize?: ((caller: Caller, request: AccessRequest) => boolean | Promise<boolean>) | undefined;
  /**
   * Returns the context of a run: the only way of a request into it. `asked` is what the client asks for, unchecked.
   * It must depend on the arguments alone: a recovered run gets its context from the same function, without `asked`.
   */
  readonly contextOf?:
    | ((caller: Caller, asked: unknown, place: { readonly graph: string; readonly thread: string }) => unknown)
    | undefined;
  /**
   * `tenant`: the callers of a tenant share its threads. `caller`: each caller reaches only its own threads.
   * Default `tenant`.
   */
  readonly scope?: "tenant" | "caller" | undefined;
}

/** Access of a server, checked. */
export interface Access {
  /** False for a server without access options: it refuses each request. */
  readonly isConfigured: boolean;
  /** True for a server that accepts each request without a credential. */
  readonly isOpen: boolean;
  readonly scope: "tenant" | "caller";
  readonly authenticate: Authenticate;
  /** Returns true if the caller has the right. */
  readonly hasRight: (caller: Caller, request: AccessRequest) => Promise<boolean>;
  readonly contextOf: ServerAccess["contextOf"];
}

const names = listOptionNames<ServerAccess>({
  authenticate: true,
  token: true,
  tokens: true,
  authorize: true,
  contextOf: true,
  scope: true,
});

/** Checks the access options. Throws `invalid_option`. */
export function createAccess(options: ServerAccess | "open" | undefined): Access {
  if (typeof options === "string" && options !== "open")
    throw invalidOption({ where: "serve", option: "access", expected: 'an object, or "open"', got: options });
  if (options === undefined || options === "open")
    return {
      isConfigured: options === "open",
      isOpen: options === "open",
      scope: "tenant",
      authenticate: options === "open" ? createAuthenticator("serve", "open") : async () => undefined,
      hasRight: async (caller, request) => isWithinScopes(caller, request),
      contextOf: undefined,
    };
  checkOptions("serve access", options, names);
  const { authorize, contextOf, scope = "tenant" } = options;
  checkFunction("serve access", { authorize, contextOf });
  checkChoice("serve access", { scope }, ["tenant", "caller"]);
  return {
    isConfigured: true,
    isOpen: false,
    scope,
    authenticate: createAuthenticator("serve", options),
    hasRight: async (caller, request) =>
      isWithinScopes(caller, request) && (authorize === undefined || (await authorize(caller, request)) === true),
    contextOf,
  };
}

function isWithinScopes({ scopes = [] }: Caller, { action }: AccessRequest): boolean {
  return action !== "admin" || scopes.includes("admin");
}
