/** Caller of a server: the sender of a request, as the authentication says. */
import { invalidOption } from "@statewright/core/adapter";

/** Who calls. Only the authentication creates callers: a body or another header never changes one. */
export interface Caller {
  /** Id of the user or program, 1 to 128 of `A-Z a-z 0-9 _ . : @ -`. */
  readonly id: string;
  /** Tenant whose threads the caller reaches, 1 to 40 of `A-Z a-z 0-9 _ -`. */
  readonly tenant: string;
  /** Rights such as `admin`. Default: none. */
  readonly scopes?: readonly string[];
  /** Verified claims for `authorize` and `contextOf`. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

const idPattern = /^[A-Za-z0-9_.:@-]{1,128}$/;
const tenantPattern = /^[A-Za-z0-9_-]{1,40}$/;

/**
 * Returns a frozen copy of the caller. Throws `invalid_option` for an id or a tenant outside of its grammar: the ids of
 * threads in the store begin with the tenant.
 */
export function checkCaller(where: string, caller: Caller): Caller {
  const { id, tenant, scopes = [], claims = {} } = caller;
  if (typeof id !== "string" || !idPattern.test(id))
    throw invalidOption({
      where,
      expected: "a caller with an id of 1 to 128 of the characters A-Z a-z 0-9 _ . : @ -",
      got: id,
      fix: "Use another id for the caller, such as a hash",
    });
  if (typeof tenant !== "string" || !tenantPattern.test(tenant))
    throw invalidOption({
      where,
      expected: "a caller with a tenant of 1 to 40 of the characters A-Z a-z 0-9 _ -",
      got: tenant,
      fix: "Use another tenant for the caller, such as a hash",
    });
  if (!Array.isArray(scopes) || !scopes.every((scope) => typeof scope === "string"))
    throw invalidOption({ where, expected: "a caller whose scopes are a list of strings", got: scopes });
  return Object.freeze({ id, tenant, scopes: Object.freeze([...scopes]), claims });
}
