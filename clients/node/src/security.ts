/** Users, ACLs and certificates of a cluster that was made with security. */

import type { Cluster } from "./cluster.js";
import { part, query } from "./control.js";

export class Users {
  constructor(private readonly cluster: Cluster) {}

  /** Adds a user, or gives it another password; with mtls it gets a certificate. */
  async add(name: string, password?: string): Promise<void> {
    await this.cluster.ask("POST", "/users", { name, password });
  }

  /** Removes a user. Its connections stay. */
  async remove(name: string): Promise<void> {
    await this.cluster.ask("DELETE", `/users${part(name)}`);
  }

  /** Their names. */
  async list(): Promise<string[]> {
    return (await this.cluster.ask<{ users: string[] }>("GET", "/users")).users;
  }

  /** Name to password, of users that were named or added here. */
  async passwords(): Promise<Record<string, string>> {
    return (await this.cluster.ask<{ passwords: Record<string, string> }>("GET", "/users")).passwords;
  }
}

/** In the words of kafka-acls. Principal is User:alice. */
export interface Acl {
  principal: string;
  operation: string;
  resource: string;
  name: string;
  pattern?: "literal" | "prefixed";
  permission?: "allow" | "deny";
  host?: string;
}

const principal = (user: string): string => (user.includes(":") ? user : `User:${user}`);

export class Acls {
  constructor(private readonly cluster: Cluster) {}

  async add(...acls: Acl[]): Promise<void> {
    await this.cluster.ask("POST", "/acls", { acls });
  }

  /** Allows a user operations on a topic, group, transactional_id or cluster. */
  allow(user: string, resource: string, name: string, ...operations: string[]): Promise<void> {
    return this.add(...operations.map((operation) => ({ principal: principal(user), operation, resource, name })));
  }

  /** Denies a user operations, whatever is allowed. */
  deny(user: string, resource: string, name: string, ...operations: string[]): Promise<void> {
    return this.add(...operations.map((operation): Acl => ({ principal: principal(user), operation, resource, name, permission: "deny" })));
  }

  async list(): Promise<Acl[]> {
    return this.cluster.ask("GET", "/acls");
  }

  /** Removes those of a user, or all. Returns how many. */
  async remove(user?: string): Promise<number> {
    const words = query({ principal: user === undefined ? undefined : principal(user) });
    return (await this.cluster.ask<{ removed: number }>("DELETE", `/acls${words}`)).removed;
  }
}

/** That of the broker is "server", that of a user has its name. New connections meet what is changed. */
export class Certificates {
  constructor(private readonly cluster: Cluster) {}

  /** Shows a certificate that expired yesterday. */
  async expire(name = "server"): Promise<void> {
    await this.cluster.ask("POST", "/certificates", { action: "expire", name });
  }

  /** Makes a good one, for these hosts if any are named. */
  async issue(name = "server", hosts: string[] = []): Promise<void> {
    await this.cluster.ask("POST", "/certificates", { action: "issue", name, hosts });
  }

  /** Makes all again; with `authority` by one that no client trusts yet. */
  async rotate(options: { authority?: boolean } = {}): Promise<void> {
    await this.cluster.ask("POST", "/certificates", { action: options.authority ? "rotate-authority" : "rotate" });
  }
}
