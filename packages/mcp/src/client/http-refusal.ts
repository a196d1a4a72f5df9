/** HTTP refusals of an MCP server as messages for people, with the address and the fix. */
import {
  type AuthProvider,
  type OAuthClientProvider,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from "@modelcontextprotocol/client";

/** Refusal as the `what` and `next` of an error. */
export interface Refusal {
  readonly what: string;
  readonly next: string;
}

/** Target and credentials of a request. */
export interface HttpTarget {
  readonly server: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly authProvider: AuthProvider | OAuthClientProvider | undefined;
  /** True if the options contain `authorizationCode`, which awaits a login by a person. */
  readonly awaitsLogin: boolean;
}

/** Maximum length of server text in an error. */
const maxQuotedLength = 200;

/** Formats an address without its query, which may contain a secret. */
export function formatAddress({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

/** Returns true for the SDK's error of a missing login. */
export function isUnauthorized(error: unknown): boolean {
  return error instanceof Error && error.name === "UnauthorizedError";
}

/** Describes the refusal of an HTTP status; undefined for other errors. */
export function describeRefusal(error: unknown, target: HttpTarget): Refusal | undefined {
  const { server, url } = target;
  const address = formatAddress(url);
  const subject = `the MCP server "${server}" at ${address}`;
  if (isUnauthorized(error)) return describeUnauthorized(subject, target);
  if (target.authProvider !== undefined && error instanceof Error && /client registration/i.test(error.message))
    return {
      what: `${subject} requires a login, and its authorization server does not register new clients`,
      next: "Register a client, and pass it as clientInformation of the authProvider",
    };
  if (error instanceof SdkHttpError) return describeStatus(error, subject, target);
  if (error instanceof SdkError && error.code === SdkErrorCode.ClientHttpUnexpectedContent)
    return {
      what: `${address} does not serve MCP server "${server}": the response is not MCP (${error.message})`,
      next: urlHint,
    };
  return undefined;
}

const urlHint = "Fix the url: its path matters, and is often /mcp";

function describeStatus(error: SdkHttpError, subject: string, target: HttpTarget): Refusal {
  const { status = 0 } = error;
  switch (status) {
    case 401:
      return describeUnauthorized(subject, target);
    case 403:
      return {
        what: `${subject} denied the request ${getCredentialKind(target) === "none" ? "without credentials" : "with these credentials"} (403)`,
        next: `Use credentials with access: ${credentialHint}`,
      };
    case 404:
      return { what: `${subject.replace('" at ', '" is not at ')} (404)`, next: urlHint };
    case 405:
      return {
        what: `${subject} does not support Streamable HTTP (405)`,
        next: `${urlHint}; a server with only the older HTTP+SSE transport is not supported`,
      };
    case 429:
      return { what: `${subject} received too many requests (429)`, next: "Try later" };
    default:
      if (status >= 300 && status < 400)
        return {
          what: `${subject} responded with a redirect, which is not followed (${status})`,
          next: "Check the target of the redirect, and use it as url if it belongs to the server",
        };
      return status >= 500
        ? {
            what: `${subject} failed (${status})${quoteServerText(error)}`,
            next: "Retry later, or check the log of the server",
          }
        : {
            what: `${subject} rejected the request (${status})${quoteServerText(error)}`,
            next: 'Fix the url; a server of a later protocol revision needs protocol: "auto"',
          };
  }
}

const credentialHint = "authProvider: { token: async () => … }, or a header in headers";

function describeUnauthorized(subject: string, target: HttpTarget): Refusal {
  const checkHint = "Check the expiry and the audience of the credentials";
  switch (getCredentialKind(target)) {
    case "none":
      return { what: `${subject} requires credentials (401)`, next: `Pass ${credentialHint}` };
    case "headers":
      return { what: `${subject} rejected the credentials in headers (401)`, next: checkHint };
    case "token":
      return { what: `${subject} rejected the credentials of authProvider (401)`, next: checkHint };
    case "person":
      return target.awaitsLogin
        ? { what: `${subject} rejected the login (401)`, next: "Log in again" }
        : {
            what: `${subject} requires a login by a person (401)`,
            next: "Pass authorizationCode, which awaits the login and returns the authorization code",
          };
  }
}

/** Returns the kind of credentials of a request. */
function getCredentialKind({ headers, authProvider }: HttpTarget): "none" | "headers" | "token" | "person" {
  if (authProvider === undefined)
    return Object.keys(headers).some((name) => /auth|token|key|secret|cookie/i.test(name)) ? "headers" : "none";
  return "redirectUrl" in authProvider && authProvider.redirectUrl !== undefined ? "person" : "token";
}

/** Quotes the error text of a response, unless it is an HTML page. */
function quoteServerText({ data }: SdkHttpError): string {
  const { text } = data as { readonly text?: unknown };
  const quoted = typeof text === "string" ? extractMessage(text).trim().replace(/\s+/g, " ") : "";
  if (quoted === "" || quoted.startsWith("<")) return "";
  return `: ${quoted.length > maxQuotedLength ? `${quoted.slice(0, maxQuotedLength)}…` : quoted.replace(/\.$/, "")}`;
}

/** Extracts the message of a JSON error; otherwise returns the text unchanged. */
function extractMessage(body: string): string {
  try {
    const { error, message } = JSON.parse(body) as { readonly error?: unknown; readonly message?: unknown };
    const inner = typeof error === "object" && error !== null && "message" in error ? error.message : error;
    const found = [inner, message].find((each) => typeof each === "string");
    return typeof found === "string" ? found : body;
  } catch {
    return body;
  }
}
