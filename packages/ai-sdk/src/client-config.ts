/** Facts in the configuration of a client, for error messages. Clients declare no type for them, so all are optional. */
/** Names of environment variables with keys of providers. */
const keyVariables = /_(?:API_?KEY|API_?TOKEN|AUTH_TOKEN|BEARER_TOKEN(?:_\w+)?|SECRET_ACCESS_KEY|SESSION_TOKEN)$/;
/** Names of headers with keys. */
const keyHeaders = /auth|key|token|secret|cookie/i;
const minSecretLength = 8;

/** Lists the secrets that a provider may echo: key headers of the client, and keys in the environment. */
export async function listClientSecrets(model: object): Promise<readonly string[]> {
  const headers = await readHeaders(model);
  const fromClient = Object.entries(headers).flatMap(([name, value]) =>
    keyHeaders.test(name) && typeof value === "string" ? value.split(/\s+/) : [],
  );
  const fromEnvironment = Object.entries(readEnvironment()).flatMap(([name, value]) =>
    keyVariables.test(name) && typeof value === "string" ? [value] : [],
  );
  return [...new Set([...fromClient, ...fromEnvironment])]
    .filter((secret) => secret.length >= minSecretLength)
    .sort((a, b) => b.length - a.length);
}

/** The environment of the process; empty in a browser. */
function readEnvironment(): object {
  return toFields(toFields(toFields(globalThis)["process"])["env"]);
}

async function readHeaders(model: object): Promise<object> {
  try {
    const config = toFields(toFields(model)["config"]);
    const { headers } = config;
    return toFields(typeof headers === "function" ? await headers.call(config) : headers);
  } catch {
    // A client without its key throws here; the error of the call names the key.
    return {};
  }
}

/** Returns the address of the client without query and credentials; undefined if the client does not show it. */
export function findClientAddress(model: object): string | undefined {
  try {
    const { config: unknownConfig, modelId } = toFields(model);
    const config = toFields(unknownConfig);
    const { baseURL, url } = config;
    return formatAddress(typeof url === "function" ? url.call(config, { path: "", modelId }) : baseURL);
  } catch {
    return undefined;
  }
}

/** Returns a value for reading unknown fields; an empty object for a value without fields. */
export function toFields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

/** Formats an address without query and credentials; undefined for a value that is no address. */
export function formatAddress(address: unknown): string | undefined {
  if (typeof address !== "string" || !URL.canParse(address)) return undefined;
  const { origin, pathname } = new URL(address);
  return `${origin}${pathname === "/" ? "" : pathname}`;
}
