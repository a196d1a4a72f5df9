/** One table of all routes of all protocols, and the search in it. */
import { invalidOption } from "@statewright/core/adapter";
import { RegExpRouter } from "hono/router/reg-exp-router";
import { SmartRouter } from "hono/router/smart-router";
import { TrieRouter } from "hono/router/trie-router";
import { actions } from "../access/caller.ts";
import type { HttpMethod, Protocol, Route } from "./route.ts";

/** Route with its protocol and its whole path below the base path. */
export interface TableRoute {
  readonly protocol: Protocol;
  readonly route: Route;
  readonly path: string;
}

/** Route of a request, or the methods of its path. */
export type RouteMatch =
  | { readonly row: TableRoute; readonly params: Readonly<Record<string, string>> }
  | { readonly allow: readonly string[] };

/** All routes of a server. */
export interface RouteTable {
  readonly rows: readonly TableRoute[];
  /** Finds the route of a decoded path; undefined for an unknown path. */
  readonly match: (method: string, path: string) => RouteMatch | undefined;
}

const methods: readonly HttpMethod[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/**
 * Creates the table. A request with HEAD finds the GET route. Throws `invalid_option` for two protocols with one name,
 * for two routes with one method and path, and for a route without an action.
 */
export function createRouteTable(protocols: readonly Protocol[]): RouteTable {
  checkUnique(
    "protocols with different names",
    protocols.map(({ name }) => name),
  );
  const rows = protocols.flatMap((protocol) =>
    protocol.routes.map((route) => ({ protocol, route, path: joinPath(protocol.prefix, route.path) })),
  );
  for (const { route, path } of rows) checkRoute(route, path);
  checkUnique(
    "routes with different methods or paths",
    rows.map(({ route, path }) => `${route.method} ${path.replaceAll(/:[a-zA-Z]+/g, ":")}`),
  );
  const router = new SmartRouter<TableRoute>({ routers: [new RegExpRouter(), new TrieRouter()] });
  for (const row of rows) router.add(row.route.method, row.path, row);
  const find = (method: string, path: string) => {
    const [found, stash] = router.match(method, path);
    // The most specific route wins, such as /threads/imports over /threads/:thread.
    const [first] = [...found].sort(([, one], [, other]) => Object.keys(one).length - Object.keys(other).length);
    if (first === undefined) return undefined;
    const [row, params] = first;
    return { row, params: resolveParams(params, stash) };
  };
  return {
    rows,
    match: (method, path) => {
      const known = method === "HEAD" ? "GET" : methods.find((each) => each === method);
      const found = known === undefined ? undefined : find(known, path);
      if (found !== undefined) return found;
      const allow = methods.filter((other) => find(other, path) !== undefined);
      if (allow.length === 0) return undefined;
      return { allow: allow.includes("GET") ? ["HEAD", ...allow] : allow };
    },
  };
}

/** Parameters of a match: names with values, or names with their places in the values of the expression. */
function resolveParams(
  params: Readonly<Record<string, string | number>>,
  stash: readonly string[] | undefined,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(params).map(([name, at]) => [name, typeof at === "number" ? (stash?.[at] ?? "") : at]),
  );
}

function joinPath(prefix: string, path: string): string {
  return path === "/" && prefix !== "" ? prefix : `${prefix}${path}`;
}

const pathPattern = /^(?:\/:?[A-Za-z0-9_.-]+)+$/;

function checkRoute({ action, method }: Route, path: string): void {
  if (!pathPattern.test(path))
    throw invalidOption({
      where: "serve",
      option: "protocols",
      expected: "routes with segments or parameters",
      got: path,
    });
  if (!actions.includes(action))
    throw invalidOption({
      where: "serve",
      option: "protocols",
      expected: `an action for ${method} ${path}`,
      got: action,
      fix: `Use one of ${actions.join(", ")}`,
    });
}

function checkUnique(expected: string, names: readonly string[]): void {
  const duplicate = names.find((name, index) => names.indexOf(name) !== index);
  if (duplicate === undefined) return;
  throw invalidOption({ where: "serve", option: "protocols", expected, found: `"${duplicate}" twice` });
}
