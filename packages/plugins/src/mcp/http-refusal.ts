/** What a server at an address says by the status of its answer, for people: what happened, where, and what to do next. */
import {
  type AuthProvider,
  type OAuthClientProvider,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from "@modelcontextprotocol/client";

/** A refusal in words, as the parts of an error. */
export interface Refusal {
  readonly what: string;
  readonly next: string;
}

/** Who was asked, and with what. */
export interface Visit {
  readonly server: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly authProvider: AuthProvider | OAuthClientProvider | undefined;
  /** Whether something waits until a person has logged in. */
  readonly waitsForPerson: boolean;
}

/** How much of what a server says stands in an error. */
const mostSaid = 200;

/** An address as it is shown: what stands in its query may be a secret. */
export function addressOf({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

/** Whether the SDK says that nobody is logged in. */
export function isUnauthorized(error: unknown): boolean {
  return error instanceof Error && error.name === "UnauthorizedError";
}

/** What a status means; undefined for what is no answer of HTTP. */
export function httpRefusal(error: unknown, visit: Visit): Refusal | undefined {
  const { server, url } = visit;
  const address = addressOf(url);
  const it = `the MCP server "${server}" at ${address}`;
  if (isUnauthorized(error)) return unauthorized(it, visit);
  if (visit.authProvider !== undefined && error instanceof Error && /client registration/i.test(error.message))
    return {
      what: `${it} wants a login, and whoever logs people in for it takes no client that is not registered there`,
      next: "Register one, and give it as clientInformation of the authProvider",
    };
  if (error instanceof SdkHttpError) return refusalBy(error, it, visit);
  if (error instanceof SdkError && error.code === SdkErrorCode.ClientHttpUnexpectedContent)
    return {
      what: `the MCP server "${server}" is not at ${address}: what answers there speaks another language (${error.message})`,
      next: lookAtPath,
    };
  return undefined;
}

const lookAtPath = "Look at its url: the path counts, and is often /mcp";

function refusalBy(error: SdkHttpError, it: string, visit: Visit): Refusal {
  const { status = 0 } = error;
  switch (status) {
    case 401:
      return unauthorized(it, visit);
    case 403:
      return {
        what: `${it} does not allow it ${kindOf(visit) === "none" ? "without credentials" : "with these credentials"} (403)`,
        next: `Give credentials that are allowed to: ${howToGive}`,
      };
    case 404:
      return { what: `${it.replace('" at ', '" is not at ')} (404)`, next: lookAtPath };
    case 405:
      return {
        what: `${it} does not take requests of Streamable HTTP (405)`,
        next: `${lookAtPath}; a server that speaks the older HTTP+SSE alone cannot be connected`,
      };
    case 429:
      return { what: `${it} has too many requests (429)`, next: "Try later" };
    default:
      if (status >= 300 && status < 400)
        return {
          what: `${it} answers with a redirect that is not followed (${status})`,
          next: "See where it leads, and give that as url if it is the server's",
        };
      return status >= 500
        ? { what: `${it} failed (${status})${wordsOf(error)}`, next: "Try later, or look at its log" }
        : {
            what: `${it} refuses it (${status})${wordsOf(error)}`,
            next: 'Look at its url; a server of a later revision needs protocol: "auto"',
          };
  }
}

const howToGive = "authProvider: { token: async () => … }, or the header that it wants in headers";

function unauthorized(it: string, visit: Visit): Refusal {
  const look = "See whether they have expired, and are for this address";
  switch (kindOf(visit)) {
    case "none":
      return { what: `${it} wants credentials (401)`, next: `Give ${howToGive}` };
    case "headers":
      return { what: `${it} does not accept the credentials in headers (401)`, next: look };
    case "token":
      return { what: `${it} does not accept the credentials of authProvider (401)`, next: look };
    case "person":
      return visit.waitsForPerson
        ? { what: `${it} does not accept the login (401)`, next: "Let the person log in again" }
        : {
            what: `${it} wants a person to log in (401)`,
            next: "Give authorizationCode, which waits for them and gives the code that they come back with",
          };
  }
}

/** What a request was given to be let in by. */
function kindOf({ headers, authProvider }: Visit): "none" | "headers" | "token" | "person" {
  if (authProvider === undefined)
    return Object.keys(headers).some((name) => /auth|token|key|secret|cookie/i.test(name)) ? "headers" : "none";
  return "redirectUrl" in authProvider && authProvider.redirectUrl !== undefined ? "person" : "token";
}

/** What the server says beside the status, where that is no page for a browser. */
function wordsOf({ data }: SdkHttpError): string {
  const { text } = data as { readonly text?: unknown };
  const said = typeof text === "string" ? textIn(text).trim().replace(/\s+/g, " ") : "";
  if (said === "" || said.startsWith("<")) return "";
  return `: ${said.length > mostSaid ? `${said.slice(0, mostSaid)}…` : said.replace(/\.$/, "")}`;
}

/** The message of an error in JSON, or the text as it is. */
function textIn(body: string): string {
  try {
    const { error, message } = JSON.parse(body) as { readonly error?: unknown; readonly message?: unknown };
    const inner = typeof error === "object" && error !== null && "message" in error ? error.message : error;
    const found = [inner, message].find((each) => typeof each === "string");
    return typeof found === "string" ? found : body;
  } catch {
    return body;
  }
}
