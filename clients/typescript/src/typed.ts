// Types of a call, derived from the operations in api.ts.
import type { paths } from './api.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The paths that have the method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in Lowercase<M>]: object } ? P : never;
}[keyof paths];

type Operation<M extends Method, P extends keyof paths> = paths[P] extends { [K in Lowercase<M>]: infer O } ? O : never;

type Params<O, Where extends 'path' | 'query'> = O extends { parameters: { [K in Where]?: infer V } }
  ? Exclude<V, undefined>
  : never;

type JSONBody<O> = O extends { requestBody?: { content: { 'application/json': infer B } } } ? B : never;

type RawBody<O> = O extends { requestBody?: { content: { 'application/octet-stream': unknown } } } ? Raw : never;

/** Bytes that a call sends, of a known length. */
export type Raw = Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | string;

type Given<Name extends string, V> = [V] extends [never]
  ? { [K in Name]?: never }
  : Partial<V> extends V ? { [K in Name]?: V } : { [K in Name]: V };

/** What a call needs: the names in its path, its query, and a body, as JSON or as bytes. */
export type Request<M extends Method, P extends keyof paths> = Given<'path', Params<Operation<M, P>, 'path'>> &
  Given<'query', Params<Operation<M, P>, 'query'>> & {
    body?: JSONBody<Operation<M, P>>;
    raw?: RawBody<Operation<M, P>>;
    signal?: AbortSignal;
  };

/** The last parameter of a call: it may be left out if nothing in it is required. */
export type Rest<M extends Method, P extends keyof paths> = Partial<Request<M, P>> extends Request<M, P>
  ? [request?: Request<M, P>]
  : [request: Request<M, P>];

type Success<O> = O extends { responses: infer R } ? R[keyof R & (200 | 201)] : never;

/** The JSON of a successful answer; undefined if the call answers without a body. */
export type Answer<M extends Method, P extends keyof paths> = [Success<Operation<M, P>>] extends [never]
  ? undefined
  : Success<Operation<M, P>> extends infer R
    ? R extends { content: { 'application/json': infer B } } ? B : never
    : never;
