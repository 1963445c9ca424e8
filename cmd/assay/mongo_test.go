package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// mongoClient is a program with the official driver: it writes one document to the set
// whose URI is in a file, and prints how many there are.
//
//	mongo FILE
func mongoClient() {
	if err := writeAndCount(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writeAndCount(file string) error {
	uri, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := mongo.Connect(options.Client().ApplyURI(strings.TrimSpace(string(uri))))
	if err != nil {
		return err
	}
	col := c.Database("db").Collection("c")
	if _, err := col.InsertOne(ctx, bson.M{}); err != nil {
		return err
	}
	n, err := col.CountDocuments(ctx, bson.M{})
	if err != nil {
		return err
	}
	fmt.Println("documents:", n)
	return c.Disconnect(ctx)
}
